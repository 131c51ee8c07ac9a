"""The prompt: read a line with history and completion, run it, print, again."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from prompt_toolkit import PromptSession
from prompt_toolkit.auto_suggest import AutoSuggestFromHistory
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.input import Input
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.defaults import create_output
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style

from qmf_shell.completer import LineCompleter
from qmf_shell.execute import Outcome, execute
from qmf_shell.exits import FINE
from qmf_shell.render.screen import Look, Screen
from qmf_shell.session.context import Context
from qmf_shell.session.snapshot import Refresher
from qmf_shell.text import clean, plural

PROMPT = "qmf> "
#: Seconds between looks at the connection for the toolbar.
TOOLBAR = 1.0

_STYLE = Style.from_dict(
    {
        "prompt": "ansicyan bold",
        "bottom-toolbar": "reverse",
        "bottom-toolbar.bad": "ansired bold",
        "completion-menu.meta.completion": "bg:ansibrightblack ansiwhite",
    }
)
_NO_STYLE = Style.from_dict({"bottom-toolbar": "reverse"})


def history_path(environ: Mapping[str, str]) -> Path | None:
    """Where lines are remembered: under the XDG state folder; None where there is no home."""
    base = environ.get("XDG_STATE_HOME", "")
    if not base.startswith("/"):
        home = environ.get("HOME")
        if not home:
            return None
        base = f"{home}/.local/state"
    return Path(base) / "qmf-shell" / "history"


def open_history(path: Path | None) -> History:
    """The lines of earlier sessions; only of this one where the file cannot be used."""
    if path is None:
        return InMemoryHistory()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Lines may hold what nobody else should read, such as arguments of methods.
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600))
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def toolbar(context: Context) -> StyleAndTextTuples:
    """Broker and agents, or why there is no connection."""
    health = context.source.health
    url = clean(health.url)
    if not health.connected:
        reason = f": {clean(health.reason)}" if health.reason else ""
        return [("class:bottom-toolbar.bad", f" {url}  not connected{reason} ")]
    parts = [url, plural(len(context.source.agents()), "agent")]
    if context.events.total:
        parts.append(plural(context.events.total, "event"))
    return [("", f" {'  '.join(parts)} ")]


class Repl:
    """The interactive mode."""

    def __init__(
        self,
        context: Context,
        screen: Screen,
        refresher: Refresher,
        *,
        history: History | None = None,
        terminal: tuple[Input, Output] | None = None,
    ) -> None:
        """
        Args:
            context: the session.
            screen: where results are printed.
            refresher: keeps names for Tab.
            history: lines of earlier sessions.
            terminal: input and output for tests; by default the real ones.
        """
        self._context = context
        self._screen = screen
        self._refresher = refresher
        self._completer = LineCompleter(context, refresher)
        colour = screen.look is Look.COLOUR
        self._session: PromptSession[str] = PromptSession(
            [("class:prompt", PROMPT)],
            history=history or InMemoryHistory(),
            completer=self._completer,
            complete_while_typing=False,
            complete_style=CompleteStyle.COLUMN,
            reserve_space_for_menu=6,
            auto_suggest=AutoSuggestFromHistory(),
            bottom_toolbar=lambda: toolbar(context),
            refresh_interval=TOOLBAR,
            style=_STYLE if colour else _NO_STYLE,
            color_depth=None if colour else ColorDepth.DEPTH_1_BIT,
            input=terminal[0] if terminal else None,
            # With results going to a file, the prompt still belongs on the terminal.
            output=terminal[1] if terminal else create_output(always_prefer_tty=True),
        )
        self._session.default_buffer.on_text_changed += self._typed

    def _typed(self, buffer: Buffer) -> None:
        self._completer.prepare(buffer.document.text_before_cursor)

    def run(self) -> int:
        """Until `quit` or Ctrl-D; the exit code. Ctrl-C clears the line, or cancels the command that runs."""
        while True:
            try:
                line = self._session.prompt()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return FINE
            try:
                outcome = execute(line, self._context, self._screen)
            except KeyboardInterrupt:
                self._screen.after_ctrl_c()
                self._screen.error("cancelled")
                continue
            if outcome is Outcome.QUIT:
                return FINE

    def redraw(self) -> None:
        """Draw the toolbar again; may be called from any thread."""
        self._session.app.invalidate()
