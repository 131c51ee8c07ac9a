"""A live screen without a terminal: what it draws, and what keys do."""

from __future__ import annotations

from datetime import UTC
from uuid import UUID

from qmf_shell.modes.executor import evaluate
from qmf_shell.render.layout import display_width
from qmf_shell.results.result import LiveScreen
from qmf_shell.screens.drawing import draw_page
from qmf_shell.screens.geometry import Geometry, ScreenContext
from qmf_shell.screens.navigator import Navigator
from qmf_shell.screens.state import Page
from qmf_shell.session.context import Context
from shell.fakes import (
    ALPHA,
)

from qmf.schema import TYPES, ClassSchema, Property, Statistic
from qmf.views.formatting import Formatter
from qmf.views.objects import ObjectIdentity, ObjectKey, ObjectView

FORMATTER = Formatter(UTC, short=True)

QUEUE = ClassSchema(
    package="org.apache.qpid.broker",
    name="queue",
    hash=UUID(int=7),
    properties=(Property(name="name", type=TYPES["sstr"], index=True),),
    statistics=(Statistic(name="msgDepth", type=TYPES["uint32"]),),
)


def queue(index: str, name: str | None = None) -> ObjectView:
    key = ObjectKey(f"org.apache.qpid.broker:queue:{index}", ALPHA)
    return ObjectView(ObjectIdentity(key, QUEUE.key, index), QUEUE, {"name": name or index, "msgDepth": 1})


class Looked:
    """A screen without a terminal."""

    def __init__(self, context: Context, line: str) -> None:
        screen = evaluate(line, context)
        assert isinstance(screen, LiveScreen)
        page = screen.page()
        assert isinstance(page, Page)
        self.navigator = Navigator(context, page)
        self.geometry = Geometry()
        self.update()

    def update(self) -> None:
        """Load the page that is shown."""
        self.navigator.on_loaded(self.navigator.load(self.navigator.page))

    def lines(self, width: int = 100, height: int = 20, *, colour: bool = True) -> list[str]:
        """The texts of the lines; none may be wider than the screen."""
        around = ScreenContext(
            formatter=FORMATTER,
            colour=colour,
            trail=self.navigator.trail,
            right="12:00:00  every 2 s",
            message=self.navigator.alarm(FORMATTER),
            keys=self.navigator.keys,
        )
        drawn = draw_page(self.navigator.page, around, self.geometry, width, height)
        texts = ["".join(text for _, text in line) for line in drawn]
        assert len(texts) == height
        assert all(display_width(text) <= width for text in texts)
        return [text.rstrip() for text in texts]

    def styles(self, part: str) -> str:
        """The style of the first piece of text that contains a part."""
        around = ScreenContext(formatter=FORMATTER, message=None)
        drawn = draw_page(self.navigator.page, around, self.geometry, 120, 20)
        return next(style for line in drawn for style, text in line if part in text)

    def rows(self, width: int = 100, height: int = 20) -> list[str]:
        """The lines with rows."""
        lines = self.lines(width, height)
        first, count = self.geometry.body
        return [line for line in lines[first : first + count] if line]

    @property
    def text(self) -> str:
        return "\n".join(self.lines())
