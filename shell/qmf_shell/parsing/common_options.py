"""Options that several commands have."""

from __future__ import annotations

from qmf_shell.parsing.command import Option

ALL = Option(("--all",), "include what agents and consoles create on the broker for themselves")
EXACT = Option(("-e", "--exact"), "numbers with every digit, not such as 12.5 MB")
#: For what fills the terminal.
PLAIN = Option(("-p", "--plain"), "lines instead of a screen")
