"""Whatever is typed, clicked or received: a live screen draws, and never ends in an internal error."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from datetime import UTC

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prompt_toolkit.application.current import set_app
from prompt_toolkit.application.dummy import DummyApplication
from prompt_toolkit.data_structures import Point
from prompt_toolkit.input import DummyInput
from prompt_toolkit.key_binding.key_processor import KeyPress, KeyPressEvent, KeyProcessor
from prompt_toolkit.keys import Keys
from prompt_toolkit.mouse_events import MouseButton, MouseEvent, MouseEventType
from prompt_toolkit.output import DummyOutput
from qmf_shell.commands import standard
from qmf_shell.modes.executor import evaluate
from qmf_shell.render.layout import display_width
from qmf_shell.results.result import LiveScreen
from qmf_shell.screens.app import ScreenApp
from qmf_shell.screens.keys import Typing, key_bindings
from qmf_shell.session.context import Context
from shell.fakes import ALPHA, BETA, FakeBackend, filesystem, full_event, process

from qmf.views.formatting import Formatter

#: All keys that the help names.
KEYS = (
    *"?h/sS<>crtaxRm pkjgG123qQ",
    *(Keys.Enter, Keys.Escape, Keys.Backspace, Keys.F1, Keys.Tab, Keys.BackTab, Keys.Up, Keys.Down, Keys.PageUp),
    *(Keys.PageDown, Keys.Home, Keys.End, Keys.Left, Keys.Right),
)
MOUSE = (MouseEventType.MOUSE_UP, MouseEventType.SCROLL_UP, MouseEventType.SCROLL_DOWN)

#: An event has an application; where none runs, each would make one of its own, with all keys of an editor.
NOBODY = DummyApplication()


class Operated(ScreenApp):
    """A screen without a terminal and without threads; errors are raised instead of shown."""

    def __init__(self, backend: FakeBackend, line: str) -> None:
        context = Context(backend, standard())
        context.events.add(full_event("/srv/1"))
        screen = evaluate(line, context)
        assert isinstance(screen, LiveScreen)
        self.line: Typing | None = None
        super().__init__(
            context,
            screen.page(),
            formatter=Formatter(UTC),
            colour=False,
            terminal=(DummyInput(), DummyOutput()),
        )
        self.backend = backend
        self.size = 80, 24
        self.typed = ""
        self.bindings = key_bindings(self)
        self.processor = KeyProcessor(self.bindings)
        self.update()

    @property
    def typing(self) -> bool:
        return self.line is not None

    def ask(self, typing: Typing) -> None:
        self.line, self.typed = typing, typing.before

    def finish_typing(self, *, cancelled: bool = False) -> None:
        typing, self.line = self.line, None
        assert typing is not None
        if cancelled:
            typing.changed(typing.before)
        else:
            typing.done(self.typed)

    def safely(self, action: Callable[[], object]) -> None:
        shown = self.navigator.page
        action()
        if self.navigator.page is not shown:
            self.update()

    def leave(self, *, interrupted: bool = False) -> None:
        """It stays, for the next key."""

    def update(self) -> None:
        self.navigator.on_loaded(self.navigator.load(self.navigator.page))

    def strike(self, key: str) -> None:
        """Strike a key; a character that is typed into a line changes the line."""
        if self.line is not None and len(key) == 1:
            self.typed += key
            self.line.changed(self.typed)
            return
        pressed = KeyPress(key)
        with set_app(NOBODY):
            event = KeyPressEvent(
                weakref.ref(self.processor), arg=None, key_sequence=[pressed], previous_key_sequence=[], is_repeat=False
            )
            bound = [item for item in self.bindings.get_bindings_for_keys((pressed.key,)) if item.filter()]
            for item in bound[-1:]:
                item.call(event)

    def write(self, text: str) -> None:
        """Type a text, into a filter if no line is being typed, and finish it."""
        for key in [*([] if self.typing else ["/"]), *text, Keys.Enter]:
            self.strike(key)

    def point(self, event: tuple[MouseEventType, int, int]) -> None:
        """Click, or turn the wheel."""
        kind, column, row = event
        self.on_mouse(MouseEvent(Point(column, row), kind, MouseButton.NONE, frozenset()))

    def change(self, number: int) -> None:
        """Objects come, go and change, and the page is updated."""
        records = self.backend.records
        if number % 3 == 0:
            records[:] = records[: number % 4]
        elif number % 3 == 1:
            records.append(filesystem(f"/new/{number}", BETA if number % 2 else ALPHA))
        elif records:
            place = number % len(records)
            records[place] = attrs.evolve(records[place], updated=records[place].updated + number)
        records[:] = {item.identity.key: item for item in [filesystem("/"), *records]}.values()
        self.update()

    def resize(self, size: tuple[int, int]) -> None:
        """Give the terminal another size."""
        self.size = size

    def check(self) -> None:
        """Draw it: every line fits, and no error is shown."""
        lines = self.draw(*self.size)
        texts = ["".join(text for _, text in line) for line in lines]
        assert len(texts) == self.size[1]
        assert [text for text in texts if display_width(text) > self.size[0]] == []
        assert not any("internal error" in text for text in texts)
        model = self.navigator.page.model
        assert (model.current is None) == (len(model.arranged_rows()) == 0)


#: The filters that leave some rows, and the keys that go to others and open them, are what most often matters.
STEPS = st.one_of(
    st.tuples(st.just("strike"), st.sampled_from(KEYS)),
    st.tuples(st.just("strike"), st.sampled_from([Keys.Enter, "G", Keys.PageDown])),
    st.tuples(st.just("write"), st.sampled_from(["z1", "srv", "1", "threshold > 3", "threshold >", "nosuch = 1"])),
    st.tuples(st.just("write"), st.text("z1 >=~('\\", max_size=4)),
    st.tuples(st.just("change"), st.integers(0, 100)),
    st.tuples(st.just("resize"), st.tuples(st.integers(1, 130), st.integers(1, 40))),
    st.tuples(st.just("point"), st.tuples(st.sampled_from(MOUSE), st.integers(0, 79), st.integers(0, 23))),
)


@pytest.mark.parametrize(
    "line", ["watch", "watch filesystem", "watch filesystem limit 4", "watch /", "events -f", "heartbeats -f"]
)
@given(steps=st.lists(STEPS, max_size=20))
def test_any_keys_are_survived(line: str, steps: list[tuple[str, object]]) -> None:
    records = [filesystem("/"), *(filesystem(f"/srv/{number}") for number in range(30)), process(1)]
    app = Operated(FakeBackend(records), line)
    app.check()
    for name, what in steps:
        getattr(app, name)(what)
        app.check()
    app.navigator.close()


def test_the_last_row_is_filtered_out_and_what_remains_is_opened() -> None:
    app = Operated(FakeBackend([filesystem(f"/srv/{number}") for number in range(30)] + [filesystem("/z1")]), "watch")
    app.write("filesystem")
    for key in (Keys.Enter, "G", Keys.Up, "G"):
        app.strike(key)
        app.check()
    app.write("srv/7")
    app.strike(Keys.Enter)
    app.check()
    assert app.navigator.page.title == "filesystem /srv/7"
