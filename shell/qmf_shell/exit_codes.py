"""Exit codes of the programs."""

from __future__ import annotations

from typing import Final

OK: Final = 0
FAILED: Final = 1  #: a command failed
UNREACHABLE: Final = 2  #: no connection to the broker
USAGE: Final = 64  #: wrong options; as in sysexits.h
INTERRUPTED: Final = 130  #: ended by Ctrl-C


def code_of(end: SystemExit) -> int:
    """The code with which the reading of a command line ends the program: after help or version, or for wrong usage."""
    return end.code if isinstance(end.code, int) else USAGE
