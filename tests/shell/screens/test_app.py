"""Live screens with keys and mouse, on a terminal that is only a pipe."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterator
from datetime import UTC

import pytest
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.output.vt100 import Vt100_Output
from qmf_shell.commands import standard
from qmf_shell.modes.executor import evaluate
from qmf_shell.results.result import LiveScreen, Table
from qmf_shell.screens.app import Left, ScreenApp
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, filesystem
from support.waiting import wait_until

from qmf.views.formatting import Formatter

COLUMNS, ROWS = 80, 24
#: The first line with a row: below the title, the headings and their units.
FIRST = 3


class Driven:
    """A screen that runs on a thread, with the keys that a test types."""

    def __init__(self, context: Context, line: str, keys: PipeInput, *, colour: bool = True) -> None:
        screen = evaluate(line, context)
        assert isinstance(screen, LiveScreen)
        self.out = io.StringIO()
        output = Vt100_Output(
            self.out,
            lambda: Size(rows=ROWS, columns=COLUMNS),
            term="xterm-256color",
            default_color_depth=ColorDepth.DEPTH_4_BIT,
        )
        self.app = ScreenApp(context, screen.page(), formatter=Formatter(UTC), colour=colour, terminal=(keys, output))
        self._keys = keys
        self._left: list[Left] = []
        self._thread = threading.Thread(target=lambda: self._left.append(self.app.run()))
        self._thread.start()
        self.drawn("/srv/0 ")

    def type(self, keys: str, seen: Callable[[], object]) -> None:
        """Type keys, and wait until something is so."""
        self._keys.send_text(keys)
        wait_until(lambda: bool(seen()))

    def click(self, column: int, row: int, seen: Callable[[], object]) -> None:
        """Click, by the places of rows and columns from 0, and wait until something is so."""
        at = f"{column + 1};{row + 1}"
        self.type(f"\x1b[<0;{at}M\x1b[<0;{at}m", seen)

    def drawn(self, text: str, after: int = 0) -> None:
        """Wait until a text was drawn, after so many characters of output: then there is something to click."""
        wait_until(lambda: text in self.out.getvalue()[after:], text)

    @property
    def place(self) -> int:
        return self.app.navigator.page.model.cursor

    @property
    def running(self) -> bool:
        return self._thread.is_alive()

    @property
    def title(self) -> str:
        return self.app.navigator.page.title

    def leave(self, key: str = "q") -> Left:
        """Leave it."""
        if self._thread.is_alive():
            self._keys.send_text(key)
        self._thread.join(30)
        assert not self._thread.is_alive()
        return self._left[0]


@pytest.fixture
def keys() -> Iterator[PipeInput]:
    with create_pipe_input() as made:
        yield made


@pytest.fixture
def many() -> Context:
    return Context(FakeBackend([filesystem(f"/srv/{number}") for number in range(100)]), standard())


def test_the_cursor_moves_and_rows_are_opened(many: Context, keys: PipeInput) -> None:
    driven = Driven(many, "watch -n 0.2 filesystem", keys)
    try:
        driven.type("\x1b[B\x1b[B", lambda: driven.place == 2)
        driven.type("k", lambda: driven.place == 1)
        driven.type("G", lambda: driven.place == 99)
        driven.type("g", lambda: driven.place == 0)
        driven.type("\x1b[6~", lambda: driven.place == driven.app.page_height)
        driven.type("\r", lambda: driven.title.startswith("filesystem /srv/"))
        driven.type("\t", lambda: driven.app.navigator.page.summary.endswith("references"))
        driven.type("3", lambda: driven.app.navigator.page.summary.endswith("events"))
        driven.type("\x7f", lambda: driven.title == "org.example:filesystem")
        driven.type("?", lambda: driven.title == "help")
        driven.type("\x1b", lambda: driven.title == "org.example:filesystem")
        driven.type(">", lambda: driven.app.navigator.page.model.sort is not None)
        driven.type("p", lambda: driven.app.navigator.paused)
        driven.type(" ", lambda: not driven.app.navigator.paused)
        driven.type("r", lambda: driven.app.navigator.message == "showing totals")
        driven.type("m", lambda: not driven.app.mouse)
    finally:
        left = driven.leave()
    assert isinstance(left.last, Table)
    assert (left.last.title, left.interrupted) == ("org.example:filesystem, 100 objects", False)


def test_a_filter_is_typed(many: Context, keys: PipeInput) -> None:
    driven = Driven(many, "watch -n 0.2 filesystem sort openFiles", keys)
    model = driven.app.navigator.page.model
    try:
        driven.type("/srv/7", lambda: model.filter == "srv/7")
        driven.type("7", lambda: model.filter == "srv/77")
        driven.type("\r", lambda: not driven.app.typing)
        driven.type("/", lambda: driven.app.typing)
        driven.type("q", lambda: model.filter == "srv/77q")
        driven.type("\x1b", lambda: not driven.app.typing and model.filter == "srv/77")
        driven.type("t", lambda: driven.app.typing)
        driven.type("5 10\r", lambda: many.settings.thresholds == {"filesystem.openfiles": (5.0, 10.0)})
    finally:
        left = driven.leave("\x03")
    assert left.interrupted
    assert len(model.arranged_rows()) == 1


def test_the_mouse_chooses_opens_sorts_scrolls_and_leaves(many: Context, keys: PipeInput) -> None:
    driven = Driven(many, "watch -n 0.2 filesystem", keys)
    model = driven.app.navigator.page.model
    try:
        driven.click(10, FIRST + 4, lambda: driven.place == 4)
        driven.type("\x1b[<65;10;10M", lambda: model.top == 3)
        driven.type("\x1b[<64;10;10M", lambda: model.top == 0)
        driven.click(7, FIRST - 2, lambda: model.sort is not None)
        driven.type("g", lambda: model.top == driven.place == 0)
        before = len(driven.out.getvalue())
        driven.click(10, FIRST, lambda: driven.title.startswith("filesystem /srv/"))
        driven.drawn("references", before)
        driven.click(14, 1, lambda: driven.app.navigator.page.summary.endswith("references"))
        driven.click(2, ROWS - 1, lambda: not driven.running)
    finally:
        driven.leave()


def test_a_failure_in_a_page_is_a_message(many: Context, keys: PipeInput, monkeypatch: pytest.MonkeyPatch) -> None:
    driven = Driven(many, "watch -n 0.2 filesystem", keys, colour=False)
    try:
        page = driven.app.navigator.page

        def broken(news: object) -> None:
            raise RuntimeError(f"cannot show {type(news).__name__}")

        monkeypatch.setattr(page, "apply", broken)
        wait_until(lambda: "internal error: RuntimeError: cannot show" in driven.app.navigator.message)
    finally:
        driven.leave()
