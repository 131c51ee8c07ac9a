"""The keys of live screens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

import attrs
from prompt_toolkit.filters import Condition
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from qmf_shell.screens.navigator import Navigator
from qmf_shell.screens.thresholds import limits_text


@attrs.define
class Typing:
    """A line that the user types at the bottom of the screen.

    Attributes:
        label: what it is.
        changed: called with the text as it is typed.
        done: called with the text at the end.
        before: the text at the beginning, which Escape restores.
    """

    label: str
    changed: Callable[[str], None]
    done: Callable[[str], None]
    before: str = ""


class Controls(Protocol):
    """What keys do to a screen."""

    mouse: bool

    @property
    def navigator(self) -> Navigator:
        """What is shown."""

    @property
    def typing(self) -> bool:
        """True while the user types a line."""

    @property
    def page_height(self) -> int:
        """Rows on the screen."""

    def leave(self, *, interrupted: bool = False) -> None:
        """Leave the screen."""

    def update(self) -> None:
        """Load the page now."""

    def safely(self, action: Callable[[], object]) -> None:
        """Do something, then draw."""

    def ask(self, typing: Typing) -> None:
        """Let the user type a line."""

    def finish_typing(self, *, cancelled: bool = False) -> None:
        """The line was typed, or not."""


Action = Callable[[Controls], object]


def _filter(app: Controls) -> None:
    app.ask(Typing("filter:", app.navigator.filter, app.navigator.filter, app.navigator.page.model.filter))


def _thresholds(app: Controls) -> None:
    column = app.navigator.threshold_column
    if column is None:
        app.navigator.message = "sort by a column with numbers first (s): then t sets its thresholds"
        return
    before = limits_text(app.navigator.page.thresholds(column.key))
    app.ask(Typing(f"{column.title}: warning and critical from:", lambda _: None, app.navigator.set_thresholds, before))


def _mouse(app: Controls) -> None:
    app.mouse = not app.mouse
    app.navigator.message = "the mouse is used here" if app.mouse else "the mouse is left to the terminal"


def _own(app: Controls) -> None:
    app.navigator.toggle_own()
    app.update()


def _back(app: Controls) -> None:
    if not app.navigator.back():
        app.navigator.message = "this is the first page; q leaves"


#: What the keys do that the last line names.
ACTIONS: Mapping[str, Action] = {
    "q": lambda app: app.leave(),
    "?": lambda app: app.navigator.help(),
    "Enter": lambda app: app.navigator.open(),
    "Esc": _back,
    "/": _filter,
    "s": lambda app: app.navigator.choose_sort(),
    "S": lambda app: app.navigator.page.model.reverse(),
    "c": lambda app: app.navigator.choose_columns(),
    "r": lambda app: app.navigator.rates(),
    "Space": lambda app: app.navigator.toggle(),
    "Tab": lambda app: app.navigator.tab(),
    "a": _own,
    "x": lambda app: app.navigator.page.clear_gone(),
}

_KEYS: Mapping[str, Action] = {
    "q": ACTIONS["q"],
    "Q": ACTIONS["q"],
    "?": ACTIONS["?"],
    "h": ACTIONS["?"],
    "f1": ACTIONS["?"],
    "enter": ACTIONS["Enter"],
    "escape": ACTIONS["Esc"],
    "backspace": ACTIONS["Esc"],
    "/": ACTIONS["/"],
    "s": ACTIONS["s"],
    "S": ACTIONS["S"],
    "<": lambda app: app.navigator.page.model.sort_beside(-1),
    ">": lambda app: app.navigator.page.model.sort_beside(1),
    "c": ACTIONS["c"],
    "r": ACTIONS["r"],
    "t": _thresholds,
    "a": ACTIONS["a"],
    "x": ACTIONS["x"],
    "R": lambda app: app.update(),
    "m": _mouse,
    " ": ACTIONS["Space"],
    "p": lambda app: app.navigator.pause(),
    "tab": ACTIONS["Tab"],
    "s-tab": lambda app: app.navigator.tab(-1),
    "up": lambda app: app.navigator.page.model.move(-1),
    "k": lambda app: app.navigator.page.model.move(-1),
    "down": lambda app: app.navigator.page.model.move(1),
    "j": lambda app: app.navigator.page.model.move(1),
    "pageup": lambda app: app.navigator.page.model.move(-app.page_height),
    "pagedown": lambda app: app.navigator.page.model.move(app.page_height),
    "home": lambda app: app.navigator.page.model.move_to(0),
    "g": lambda app: app.navigator.page.model.move_to(0),
    "end": lambda app: app.navigator.page.model.move_to(len(app.navigator.page.model)),
    "G": lambda app: app.navigator.page.model.move_to(len(app.navigator.page.model)),
    "left": lambda app: app.navigator.page.model.scroll_sideways(-1),
    "right": lambda app: app.navigator.page.model.scroll_sideways(1),
}


def key_bindings(app: Controls) -> KeyBindings:
    """The keys of a screen."""
    bindings = KeyBindings()
    typing = Condition(lambda: app.typing)

    def bind(key: str, action: Action) -> None:
        def on_pressed(event: KeyPressEvent) -> None:
            del event
            app.navigator.message = ""
            app.safely(lambda: action(app))

        bindings.add(key, filter=~typing)(on_pressed)

    for key, action in _KEYS.items():
        bind(key, action)
    for number in range(1, 10):
        bind(str(number), lambda app, at=number - 1: app.navigator.tab(number=at))  # type: ignore[misc]

    @bindings.add("c-c")
    @bindings.add("<sigint>")
    def _interrupt(event: KeyPressEvent) -> None:
        del event
        app.leave(interrupted=True)

    @bindings.add("c-l")
    def _redraw(event: KeyPressEvent) -> None:
        event.app.renderer.clear()

    @bindings.add("enter", filter=typing)
    def _on_enter(event: KeyPressEvent) -> None:
        del event
        app.safely(app.finish_typing)

    @bindings.add("escape", filter=typing, eager=True)
    def _cancel(event: KeyPressEvent) -> None:
        del event
        app.safely(lambda: app.finish_typing(cancelled=True))

    @bindings.add("up", filter=typing)
    @bindings.add("down", filter=typing)
    def _move(event: KeyPressEvent) -> None:
        step = -1 if event.key_sequence[0].key == "up" else 1
        app.safely(lambda: app.navigator.page.model.move(step))

    return bindings
