"""The references of an object, and the references to it."""

from __future__ import annotations

from collections.abc import Callable

from qmf._natural_order import natural_key
from qmf.schema import Kind
from qmf.views.objects import ObjectIdentity, ObjectView
from qmf.views.text import plural
from qmf_shell.objects.lookup import object_label
from qmf_shell.objects.relations import relations_of
from qmf_shell.results.result import Role
from qmf_shell.screens.model import TableModel
from qmf_shell.screens.rows import Row, ScreenColumn
from qmf_shell.screens.state import Page
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_names

#: Seconds between updates, at least: each asks for all objects of all classes.
SELDOM = 10.0


def _class(row: Row) -> str:
    other = row.item.other
    return "not found" if other is None else str(other.identity.class_key.name)


def _index(row: Row) -> str:
    other = row.item.other
    return str(row.item.key) if other is None else f"{other.identity.index} {other.identity.title}".strip()


class ReferencesPage(Page):
    """The references of an object, in both directions."""

    def __init__(
        self,
        context: Context,
        identity: ObjectIdentity,
        interval: float,
        open_object: Callable[[ObjectView], Page],
    ) -> None:
        """Make the page of an object."""
        ids = context.ids
        columns = (
            ScreenColumn(
                "direction",
                "Direction",
                lambda row: row.item.direction,
                fixed=True,
                desc="to: it refers to the other; from: the other refers to it",
            ),
            ScreenColumn("id", "ID", lambda row: ids.number(row.item.key), role=Role.ID, right=True),
            ScreenColumn("class", "Class", _class),
            ScreenColumn("index", "Index", _index, role=Role.NAME),
            ScreenColumn("property", "Property", lambda row: row.item.name),
        )
        super().__init__(context, object_label(identity), TableModel(columns), max(interval, SELDOM))
        self._identity = identity
        self._open_object = open_object
        self.empty = f"{object_label(identity)} has no references, in either direction."

    def load(self) -> object:
        backend = self.context.backend
        keys = sorted(key for key in backend.classes().items if key.kind is Kind.DATA)
        objects = backend.objects(class_names(keys)).items
        return relations_of(self._identity.key, objects)

    def apply(self, news: object) -> None:
        assert isinstance(news, list)
        model = self.model
        rows = []
        for item in news:
            if item.other is not None:
                self.context.ids.assign(item.other.identity, item.other.created)
            key = item.direction, item.key, item.name
            row = model.row(key)
            if row is None:
                row = Row(key, item)
                row.order = (item.direction == "from", natural_key(f"{_class(row)} {_index(row)}"))
                row.search = f"{_class(row)} {_index(row)} {item.name}".lower()
            row.item = item
            rows.append(row)
        model.replace(rows)
        self.loaded = True

    def open(self, row: Row) -> Page | object | None:
        return None if row.item.other is None else self._open_object(row.item.other)

    @property
    def summary(self) -> str:
        return plural(len(self.model), "reference")
