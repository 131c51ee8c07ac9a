"""qmf-shell at a terminal, for lines of a page."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from shell.terminals import Terminal

#: As wide as the pages; high enough that nothing scrolls away.
COLUMNS, ROWS = 100, 150
_PROMPT = "qmf>"
_CLEAR = "\x0c"  # Ctrl-L


class TypedShell:
    """The shell, from start to end of the block."""

    def __init__(self, args: Sequence[str], env: dict[str, str]) -> None:
        self._terminal = Terminal(args, env, COLUMNS, ROWS)

    def __enter__(self) -> Self:
        self._terminal.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._terminal.__exit__(None, None, None)

    def greeting(self) -> str:
        """What it prints before its first prompt."""
        return self._shown(self._terminal.ready(), 0)

    def answer(self, text: str) -> str:
        """What a command prints."""
        self._begin(text)
        first = -(-(len(_PROMPT) + 1 + len(text)) // COLUMNS)
        return self._shown(self._terminal.ready(), first)

    def _begin(self, text: str) -> None:
        """Type a command into an empty screen."""
        terminal = self._terminal
        terminal.ready()
        terminal.child.send(_CLEAR)
        terminal.until(lambda lines: terminal.screen.cursor.y == 0 and lines[0] == _PROMPT)
        terminal.enter(text)

    def _shown(self, lines: Sequence[str], first: int) -> str:
        """The lines above the prompt."""
        return "\n".join(lines[first : self._terminal.screen.cursor.y])
