"""The common part of the three programs' command lines: options, streams, logging, exit codes."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from qmf._completion import add_completion_option
from qmf._option_values import seconds_between
from qmf._standard_streams import discard_output, open_missing_streams, until_unread
from qmf._version import __version__
from qmf_shell.exit_codes import FAILED, INTERRUPTED, UNREACHABLE, USAGE

if TYPE_CHECKING:
    from qmf.errors import QmfError

#: Seconds to wait for a connection and for answers, by default.
TIMEOUT = 10.0


seconds = seconds_between(0.01, 86_400)


class ProgramParser(argparse.ArgumentParser):
    """An argument parser with the options of all programs, which prints texts without reformatting them.

    Its exit code for wrong usage is that of sysexits.h, since 2 means here that there is no connection. Options may be
    abbreviated only for programs of Apache's names, as those were.
    """

    def __init__(self, prog: str, description: str, epilog: str, *, abbreviations: bool = False) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=abbreviations,
        )
        add = self.add_argument
        add(
            "--timeout", metavar="S", type=seconds, default=TIMEOUT, help="seconds to wait for brokers and answers (10)"
        )
        add("--no-color", action="store_true", help="plain text (NO_COLOR in the environment does the same)")
        add("--verbose", action="store_true", help="log internal operations to stderr")
        add_completion_option(self)
        add("--version", action="version", version=f"%(prog)s {__version__}")

    def error(self, message: str) -> NoReturn:
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def failed_to_open(error: QmfError) -> int:
    """The exit code after a session could not be opened; an invalid URL is wrong usage."""
    # Imported here: --help does not need it.
    from qmf.errors import CallerError

    return USAGE if isinstance(error, CallerError) else UNREACHABLE


def run_program(options: argparse.Namespace, run: Callable[[], int]) -> int:
    """Run a program with the options of `ProgramParser`; returns its exit code, also if output fails."""
    _set_up_logging(options.verbose)
    _prepare_streams()
    return _exit_code_of(run)


def _prepare_streams() -> None:
    """Make stdout and stderr safe to write to, even if the program was started without them."""
    open_missing_streams()
    for stream in (sys.stdout, sys.stderr):
        # Without this, a character that the terminal cannot show would end the program.
        with contextlib.suppress(AttributeError):
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def _exit_code_of(run: Callable[[], int]) -> int:
    """Run a program; returns its exit code, even if its output cannot be written or Ctrl-C ends it."""
    try:
        return until_unread(run)
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        discard_output()
        sys.stderr.write(f"error: cannot write the output: {error.strerror or error}\n")
        return FAILED


def _set_up_logging(verbose: bool) -> None:
    """Log nothing by default: without a handler Python would print warnings and tracebacks of tasks into the prompt."""
    root = logging.getLogger()
    if not verbose:
        root.addHandler(logging.NullHandler())
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    root.addHandler(handler)
    logging.getLogger("qmf").setLevel(logging.DEBUG)
