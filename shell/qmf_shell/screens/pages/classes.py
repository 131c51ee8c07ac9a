"""The classes with their numbers of objects."""

from __future__ import annotations

import collections
from collections.abc import Callable, Sequence

from qmf.schema import ClassKey, Kind
from qmf.views.cells import CellForm, Quantity
from qmf.views.text import plural
from qmf_shell.results.result import Role
from qmf_shell.screens.model import TableModel
from qmf_shell.screens.rows import Row, ScreenColumn
from qmf_shell.screens.state import Page
from qmf_shell.session.backend import ClassName
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name, class_names
from qmf_shell.session.own_objects import split_own

#: Seconds between updates, at least: each asks for all objects of all classes.
SELDOM = 10.0

_COLUMNS = (
    ScreenColumn("class", "Class", lambda row: row.key[1], role=Role.NAME, fixed=True),
    ScreenColumn(
        "objects",
        "Objects",
        lambda row: Quantity(row.item[0]),
        lambda row: row.item[0],
        right=True,
        form=CellForm.BRIEF,
    ),
    ScreenColumn(
        "destroyed",
        "Destroyed",
        lambda row: Quantity(row.item[1]),
        lambda row: row.item[1],
        right=True,
        form=CellForm.BRIEF,
        desc="since the session began",
    ),
    ScreenColumn("package", "Package", lambda row: row.key[0], role=Role.FAINT),
)


class ClassesPage(Page):
    """The classes of objects."""

    empty = "No classes yet: no agent has sent one."

    def __init__(
        self,
        context: Context,
        interval: float,
        open_class: Callable[[Sequence[ClassKey]], Page],
        only: Sequence[ClassName] = (),
    ) -> None:
        """Make the page, which is not loaded yet; `only`: the classes that are meant; none for all."""
        super().__init__(context, "classes", TableModel(_COLUMNS), max(interval, SELDOM))
        self._open_class = open_class
        self._only = only
        self._everything = context.everything
        self._keys: dict[ClassName, list[ClassKey]] = {}

    def load(self) -> object:
        backend = self.context.backend
        keys = sorted(key for key in backend.classes().items if key.kind is Kind.DATA)
        names = [name for name in class_names(keys) if not self._only or name in self._only]
        objects = every = backend.objects(names).items if names else ()
        if not self._everything:
            objects, _ = split_own(every, lambda: every)
        counts = collections.Counter(class_name(item.identity) for item in objects)
        versions = {name: [key for key in keys if (key.package, key.name) == name] for name in names}
        return versions, counts, len(every) - len(objects)

    def apply(self, news: object) -> None:
        assert isinstance(news, tuple)
        self._keys, counts, self.own_left_out = news
        deletions = self.context.deletions
        rows = []
        for name in self._keys:
            row = self.model.row(name) or Row(name, (0, 0), order=name, search=":".join(name).lower())
            row.item = counts[name], deletions.of(name, everything=self._everything)
            rows.append(row)
        self.model.replace(rows)
        self.loaded = True

    def toggle_own(self) -> bool | None:
        self._everything = not self._everything
        return self._everything

    def open(self, row: Row) -> Page | object | None:
        keys = [keys for name, keys in self._keys.items() if name == row.key]
        return self._open_class(keys[0]) if keys else None

    @property
    def summary(self) -> str:
        return plural(len(self.model), "class", "classes")
