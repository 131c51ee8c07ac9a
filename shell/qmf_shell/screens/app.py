"""Shows the pages of a `Navigator` on a terminal with prompt_toolkit, and passes keys and mouse to it."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.data_structures import Point
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.input import Input
from prompt_toolkit.layout import ConditionalContainer, HSplit, Layout, Window
from prompt_toolkit.layout.controls import BufferControl, UIContent, UIControl
from prompt_toolkit.layout.processors import BeforeInput
from prompt_toolkit.mouse_events import MouseEvent, MouseEventType
from prompt_toolkit.output import ColorDepth, Output

from qmf.views.formatting import Formatter
from qmf_shell.results.result import Result
from qmf_shell.screens.drawing import Fragments, draw_page
from qmf_shell.screens.geometry import Geometry, ScreenContext
from qmf_shell.screens.keys import ACTIONS, Typing, key_bindings
from qmf_shell.screens.navigator import Navigator
from qmf_shell.screens.state import Page
from qmf_shell.screens.styles import COLOURS, PLAIN
from qmf_shell.session.context import Context

if TYPE_CHECKING:
    from prompt_toolkit.key_binding.key_bindings import NotImplementedOrNone

logger = logging.getLogger("qmf.shell")

#: Seconds to wait for the rest of an escape sequence: then it was the key Escape.
_ESCAPE = 0.1
#: Seconds to wait at most for the thread that loads when the screen is left.
_LEAVE = 1.0
#: Rows that the mouse wheel moves.
_WHEEL = 3


@attrs.frozen
class Left:
    """How a screen was left.

    Attributes:
        last: what was on it, to be printed below.
        interrupted: by Ctrl-C.
    """

    last: Result
    interrupted: bool


class ScreenApp:
    """A live screen on a terminal.

    Attributes:
        navigator: what is shown.
        mouse: the mouse is used.
    """

    def __init__(
        self,
        context: Context,
        page: Page,
        *,
        formatter: Formatter,
        colour: bool,
        wide_characters: bool = True,
        terminal: tuple[Input, Output] | None = None,
    ) -> None:
        """Prepare a screen, which `run` shows.

        Args:
            wide_characters: its encoding has more than ASCII.
            terminal: input and output for tests; None for the real ones.
        """
        self.navigator = Navigator(context, page)
        self.mouse = True
        self._printing = formatter
        self._formatter = attrs.evolve(formatter, short=True)
        self._colour = colour
        self._wide_characters = wide_characters
        self._geometry = Geometry()
        self._typing: Typing | None = None
        self._buffer = Buffer(multiline=False, on_text_changed=lambda buffer: self._on_typed(buffer.text))
        self._wake = threading.Event()
        self._leaving = False
        self._app: Application[bool] = Application(
            layout=self._layout(),
            key_bindings=key_bindings(self),
            style=COLOURS if colour else PLAIN,
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            full_screen=True,
            mouse_support=Condition(lambda: self.mouse),
            input=terminal[0] if terminal else None,
            output=terminal[1] if terminal else None,
        )
        self._app.ttimeoutlen = _ESCAPE
        self._app.timeoutlen = _ESCAPE

    # -- running

    def run(self) -> Left:
        """Show it until the user leaves it."""
        thread = threading.Thread(target=self._load, name="qmf-shell-screen", daemon=True)
        try:
            interrupted = self._app.run(pre_run=thread.start)
        except (KeyboardInterrupt, EOFError) as reason:
            # The terminal was closed, or a signal came.
            interrupted = isinstance(reason, KeyboardInterrupt)
        finally:
            self._leaving = True
            self._wake.set()
            if thread.ident is not None:
                # It may wait for an agent, which nobody wants to wait for now.
                thread.join(_LEAVE)
            self.navigator.close()
        page = self.navigator.last_page
        return Left(page.result(page.model.window(self.page_height)[1]), interrupted)

    def leave(self, *, interrupted: bool = False) -> None:
        """End `run`."""
        if not self._app.is_done:
            self._app.exit(result=interrupted)

    def _load(self) -> None:
        """Load the page that is shown again and again, on a thread of its own."""
        while not self._leaving:
            if self.navigator.loads:
                page = self.navigator.page
                loaded = self.navigator.load(page)
                loop = self._app.loop
                if loop is None or self._leaving:
                    return
                with contextlib.suppress(RuntimeError):  # the loop has ended
                    loop.call_soon_threadsafe(self.safely, lambda loaded=loaded: self.navigator.on_loaded(loaded))
                if page is not self.navigator.page:
                    continue
            self._wake.wait(self.navigator.page.interval)
            self._wake.clear()

    def update(self) -> None:
        """Load the page that is shown now."""
        self._wake.set()

    def safely(self, action: Callable[[], object]) -> None:
        """Do what a key, the mouse or an update asks for: a bug must not end the screen. Then draw."""
        shown = self.navigator.page
        try:
            action()
        except Exception as error:
            logger.debug("internal error on a live screen", exc_info=True)
            self.navigator.message = f"internal error: {type(error).__name__}: {error} (--verbose shows details)"
        if self.navigator.page is not shown:
            self.update()
        self._app.invalidate()

    # -- what is on the terminal

    def _layout(self) -> Layout:
        body = Window(_Body(self), always_hide_cursor=True, wrap_lines=False)
        line = Window(
            BufferControl(self._buffer, input_processors=[BeforeInput(self._label, "class:input")]),
            height=1,
            style="class:input",
        )
        self._body, self._line = body, line
        return Layout(HSplit([body, ConditionalContainer(line, Condition(lambda: self.typing))]), focused_element=body)

    def _label(self) -> str:
        return f"{self._typing.label} " if self._typing is not None else ""

    def draw(self, width: int, height: int) -> list[Fragments]:
        """The lines of the page that is shown."""
        around = ScreenContext(
            formatter=self._formatter,
            printing=self._printing,
            colour=self._colour,
            trail=self.navigator.trail,
            right=self.navigator.right(self._formatter),
            message=self.navigator.alarm(self._formatter),
            keys=self.navigator.keys,
            wide_characters=self._wide_characters,
        )
        try:
            return draw_page(self.navigator.page, around, self._geometry, width, height)
        except Exception as error:
            logger.debug("internal error while drawing", exc_info=True)
            text = f"internal error: {type(error).__name__}: {error} (--verbose shows details)"
            return [[("", text[:width])], *([[("", "")]] * (height - 1))][:height]

    @property
    def page_height(self) -> int:
        """Rows on the screen."""
        return max(1, self._geometry.body[1])

    # -- a line that is typed

    @property
    def typing(self) -> bool:
        """True while the user types a line."""
        return self._typing is not None

    def ask(self, typing: Typing) -> None:
        """Let the user type a line."""
        self._typing = None
        self._buffer.text = typing.before
        self._buffer.cursor_position = len(typing.before)
        self._typing = typing
        self._app.layout.focus(self._line)

    def finish_typing(self, *, cancelled: bool = False) -> None:
        """The user has typed the line, or does not want to."""
        typing, self._typing = self._typing, None
        self._app.layout.focus(self._body)
        if typing is None:
            return
        if cancelled:
            typing.changed(typing.before)
            self.navigator.message = ""
        else:
            typing.done(self._buffer.text)

    def _on_typed(self, text: str) -> None:
        typing = self._typing
        if typing is not None:
            self.safely(lambda: typing.changed(text))

    # -- the mouse

    def on_mouse(self, event: MouseEvent) -> None:
        """A click or the wheel."""
        position = event.position
        model = self.navigator.page.model
        match event.event_type:
            case MouseEventType.SCROLL_UP:
                model.scroll(-_WHEEL, self.page_height)
            case MouseEventType.SCROLL_DOWN:
                model.scroll(_WHEEL, self.page_height)
            case MouseEventType.MOUSE_UP:
                self._on_clicked(position)

    def _on_clicked(self, position: Point) -> None:
        geometry = self._geometry
        first, count = geometry.body
        model = self.navigator.page.model
        if first <= position.y < first + count:
            number = model.top + position.y - first
            if number < len(model.arranged_rows()):
                if number == model.cursor:
                    self.navigator.open()
                else:
                    model.move_to(number)
        elif position.y == geometry.head:
            for start, end, key in geometry.heads:
                if start <= position.x < end:
                    model.sort_by(key)
        elif position.y == 1:
            for start, end, number in geometry.tabs:
                if start <= position.x < end:
                    self.navigator.tab(number=number)
        elif position.y == geometry.size[1] - 1:
            for start, end, key in geometry.keys:
                if start <= position.x < end:
                    self.press(key)

    def press(self, key: str) -> None:
        """Do what a key of the last line does."""
        ACTIONS[key](self)


class _Body(UIControl):
    """The page as what prompt_toolkit shows."""

    def __init__(self, app: ScreenApp) -> None:
        self._app = app

    def create_content(self, width: int, height: int) -> UIContent:
        lines = self._app.draw(width, height)
        texts: list[StyleAndTextTuples] = [[*line] for line in lines]
        return UIContent(get_line=lambda number: texts[number], line_count=len(lines), show_cursor=False)

    def is_focusable(self) -> bool:
        return True

    def mouse_handler(self, mouse_event: MouseEvent) -> NotImplementedOrNone:
        self._app.safely(lambda: self._app.on_mouse(mouse_event))
        return None
