"""What the command lines of the three programs have in common: options, streams, logging, exit codes."""

from __future__ import annotations

import argparse
import contextlib
import logging
import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from qmf._version import __version__
from qmf_shell.exit_codes import FAILED, INTERRUPTED, OK, UNREACHABLE, USAGE

if TYPE_CHECKING:
    from qmf.errors import QmfError

#: Seconds to wait for a connection and for answers, when nothing else is asked for.
TIMEOUT = 10.0


class ProgramParser(argparse.ArgumentParser):
    """argparse with the options that all programs have, and texts as they are written.

    Its exit code of wrong usage is the one that sysexits.h names: 2 means here that there is no connection.
    """

    def __init__(self, prog: str, description: str, epilog: str) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add = self.add_argument
        add("--timeout", metavar="S", type=seconds, default=TIMEOUT, help="wait so long for brokers and answers (10 s)")
        add("--no-color", action="store_true", help="plain text (NO_COLOR in the environment does the same)")
        add("--verbose", action="store_true", help="log to stderr what happens below")
        add("--version", action="version", version=f"%(prog)s {__version__}")

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def seconds(text: str) -> float:
    """The seconds that an option gives.

    Raises:
        ArgumentTypeError: it is no number from 0.01 to 86400.
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0.01 <= value <= 86400:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0.01 to 86400")
    return value


def count(text: str) -> int:
    """The number above 0 that an option gives.

    Raises:
        ArgumentTypeError: it is none.
    """
    if not text.isascii() or not text.isdigit() or not 0 < int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number above 0")
    return int(text)


def failed_to_open(error: QmfError) -> int:
    """The exit code where a session could not be opened: a URL that is none is wrong usage."""
    # Late: whoever has such an error has loaded it, and --help does without.
    from qmf.errors import CallerError

    return USAGE if isinstance(error, CallerError) else UNREACHABLE


def run_program(options: argparse.Namespace, run: Callable[[], int]) -> int:
    """Run a program with the options of `ProgramParser`; its exit code, also where its output cannot be written."""
    _set_up_logging(options.verbose)
    _prepare_streams()
    return _guarded(run)


def _prepare_streams() -> None:
    """Make stdout and stderr safe to write to, whatever the program was started with."""
    if sys.stdout is None or sys.stderr is None:
        # Started with a closed stream: what goes there is not wanted.
        nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - until the end
        sys.stdout, sys.stderr = sys.stdout or nowhere, sys.stderr or nowhere
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character gets an escape instead of ending the program.
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _guarded(run: Callable[[], int]) -> int:
    """Run a program and give its exit code, also where the output cannot be written or Ctrl-C ends it."""
    try:
        code = run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        _drop_output()
        return OK
    except OSError as error:
        _drop_output()
        sys.stderr.write(f"error: cannot write the output: {error.strerror or error}\n")
        return FAILED
    return code


def _drop_output() -> None:
    """Python flushes at exit: let that go nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _set_up_logging(verbose: bool) -> None:
    """Nothing by default: without a handler Python prints warnings, and tracebacks of lost tasks, into the prompt."""
    root = logging.getLogger()
    if not verbose:
        root.addHandler(logging.NullHandler())
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    logging.getLogger("qmf").setLevel(logging.DEBUG)
