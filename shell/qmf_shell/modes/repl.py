"""The prompt: reads a line with history and completion, runs it, and prints the result, again and again."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit import PromptSession
from prompt_toolkit.application import Application
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.completion import DynamicCompleter
from prompt_toolkit.filters import Condition
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style

from qmf.connecting import xdg_path
from qmf.views.text import clean, plural
from qmf_shell.exit_codes import OK
from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.modes.output_target import terminal_echo
from qmf_shell.modes.screen import Screen
from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.context import Context
from qmf_shell.session.name_cache import NameRefresher

if TYPE_CHECKING:
    from qmf_shell.completion.completer import LineCompleter
    from qmf_shell.completion.hints import HintPart

logger = logging.getLogger("qmf.shell")

PROMPT = "qmf> "
#: Seconds between updates of the toolbar.
TOOLBAR_INTERVAL = 1.0

_STYLE = Style.from_dict(
    {
        "prompt": "ansicyan bold",
        "bottom-toolbar": "reverse",
        "bottom-toolbar.bad": "ansired bold",
        "bottom-toolbar.now": "bold underline",
        "completion-menu.meta.completion": "bg:ansibrightblack ansiwhite",
    }
)
_NO_STYLE = Style.from_dict({"bottom-toolbar": "reverse", "bottom-toolbar.now": "underline"})


def history_path(environ: Mapping[str, str]) -> Path | None:
    """The file with the history, in the XDG state folder; None without a home folder."""
    return xdg_path(environ, "XDG_STATE_HOME", ".local/state", "history")


def open_history(path: Path | None) -> History:
    """The lines of earlier sessions; only of this one if the file cannot be used."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Lines may contain what nobody else should read, such as arguments of methods.
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def toolbar(context: Context, hints: Sequence[HintPart] = (), columns: int | None = None) -> StyleAndTextTuples:
    """The toolbar: a lost connection, else the hint about the line that is being typed, else brokers and agents.

    Args:
        hints: the hint about the line that is being typed.
        columns: of the terminal; if it is too narrow, the parts before the expected one are left out.
    """
    lost = [item for item in context.backend.statuses if not item.connected]
    if lost:
        text = "; ".join(f"{item.url}  not connected" + (f": {item.reason}" if item.reason else "") for item in lost)
        return [("class:bottom-toolbar.bad", f" {clean(text)} ")]
    if hints:
        hints = _fitting(hints, columns)
        shown = [("class:bottom-toolbar.now" if item.now else "", clean(item.text)) for item in hints]
        return [("", " "), *shown, ("", " ")]
    statuses = context.backend.statuses
    parts = [clean(statuses[0].url) if len(statuses) == 1 else plural(len(statuses), "broker")]
    parts.append(plural(len(context.backend.agents()), "agent"))
    events = context.events.count(everything=context.everything)
    if events:
        parts.append(plural(events, "event"))
    return [("", f" {'  '.join(parts)} ")]


def _fitting(hints: Sequence[HintPart], columns: int | None) -> Sequence[HintPart]:
    """The hint, or only the expected part and its description if the hint is too long."""
    now = [item for item in hints if item.now]
    if columns is None or not now or sum(len(item.text) for item in hints) + 2 <= columns:
        return hints
    return [*now, *([] if hints[-1].now else [hints[-1]])]


class Repl:
    """The interactive mode."""

    def __init__(
        self,
        context: Context,
        screen: Screen,
        refresher: NameRefresher,
        *,
        history: History | None = None,
        terminal: tuple[Input, Output] | None = None,
    ) -> None:
        """Prepare the prompt.

        Args:
            history: lines of earlier sessions.
            terminal: input and output for tests; by default the real ones.
        """
        self._context = context
        self._screen = screen
        self._refresher = refresher
        self._completer: LineCompleter | None = None
        colour = screen.style is OutputStyle.COLOUR
        self._session: PromptSession[str] = PromptSession(
            self._prompt,
            history=history or InMemoryHistory(),
            completer=DynamicCompleter(self._load_completer),
            complete_while_typing=Condition(lambda: context.settings["completion"] == "typing"),
            complete_style=CompleteStyle.COLUMN,
            reserve_space_for_menu=6,
            auto_suggest=AutoSuggestFromHistory(),
            bottom_toolbar=self._toolbar,
            refresh_interval=TOOLBAR_INTERVAL,
            style=_STYLE if colour else _NO_STYLE,
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            input=terminal[0] if terminal else None,
            # If results go to a file, the prompt is still shown on the terminal.
            output=terminal[1] if terminal else create_output(always_prefer_tty=True),
        )
        self._session.default_buffer.on_text_changed += lambda buffer: self._load_completer().prepare(
            buffer.document.text_before_cursor
        )
        self._session.app.after_render += self._on_first_render

    def _on_first_render(self, app: Application[str]) -> None:
        """After the prompt is shown, start fetching names, which would have delayed it."""
        del app
        self._session.app.after_render -= self._on_first_render
        self._refresher.on_change(self._on_new_names)
        self._refresher.start()
        threading.Thread(target=self._load_completer, name="qmf-shell-load", daemon=True).start()

    def _load_completer(self) -> LineCompleter:
        """The completer, and with it the commands. Loaded after the prompt is shown, so that it need not wait."""
        if self._completer is None:
            from qmf_shell.completion.completer import LineCompleter

            self._completer = LineCompleter(self._context, self._refresher)
        return self._completer

    def _on_new_names(self) -> None:
        """Called on the refresher's thread when there are new names."""
        loop = self._session.app.loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop of a line that is finished
                loop.call_soon_threadsafe(self._complete_again)

    def _complete_again(self) -> None:
        """Open the menu for which Tab was pressed before its names were fetched."""
        buffer = self._session.default_buffer
        completer = self._completer
        if completer is not None and completer.pending_text is not None and completer.pending_text == buffer.text:
            state = buffer.complete_state
            if state is None or state.current_completion is None:
                buffer.start_completion(insert_common_part=True)

    def _toolbar(self) -> StyleAndTextTuples:
        text = self._session.default_buffer.document.text_before_cursor
        hints: Sequence[HintPart] = ()
        try:
            hints = self._load_completer().hint(text) if text else ()
        except Exception:
            # A bug in a hint must not prevent the user from typing.
            logger.debug("no hint for %r", text, exc_info=True)
        return toolbar(self._context, hints, self._session.output.get_size().columns)

    def run(self) -> int:
        """Run until `quit` or Ctrl-D; returns the exit code. Ctrl-C clears the line, or cancels the running command."""
        while True:
            try:
                line = self._session.prompt()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return OK
            try:
                with terminal_echo(False):
                    outcome = execute(line, self._context, self._screen)
            except KeyboardInterrupt:
                self._screen.after_ctrl_c()
                self._screen.error("cancelled")
                continue
            if outcome is LineOutcome.QUIT:
                return OK

    def _prompt(self) -> StyleAndTextTuples:
        """The prompt, with name and colour of the context."""
        connection = self._context.connection
        if connection is None:
            return [("class:prompt", PROMPT)]
        style = f"ansi{connection.colour} bold" if connection.colour else "class:prompt"
        return [(style, f"qmf {clean(connection.name)}> ")]

    def redraw(self) -> None:
        """Redraw the toolbar; may be called from any thread."""
        self._session.app.invalidate()
