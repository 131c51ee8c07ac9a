"""What the tools have in common: options of the connection, how they end, and how they report errors."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

from qmf._completion import add_completion_option
from qmf._version import __version__
from qmf.client import BrokerAgent
from qmf.connecting import UrlAction
from qmf.errors import QmfError

OK, FAILED, USAGE, INTERRUPTED = 0, 1, 2, 130

#: Seconds to wait for the connection and for answers, by default.
TIMEOUT = 10
#: The limit when the user asks for none, in seconds.
NO_LIMIT = 10**6

ADDRESS_HELP = "broker: [user/password@]host[:port] or amqp[s]://[user:password@]host[:port]; default: localhost"


class ToolParser(argparse.ArgumentParser):
    """A parser that reports wrong usage in one line, and takes options by their whole names only."""

    def __init__(self, prog: str, **options: Any) -> None:
        super().__init__(prog=prog, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """See `ArgumentParser`."""
        self.exit(USAGE, f"{self.prog}: {message} (see {self.prog} --help)\n")


def add_connection_options(parser: argparse.ArgumentParser, *names: str) -> None:
    """Add the options for the broker's address, the time limit, SASL and TLS.

    Args:
        parser: of the tool.
        names: option names for the address, such as ``-b``.
    """
    group = parser.add_argument_group("General Options")
    add = group.add_argument
    add(*names, dest="broker", metavar="<address>", default="localhost", action=UrlAction, help=ADDRESS_HELP)
    add(
        "-t",
        "--timeout",
        type=_seconds,
        default=TIMEOUT,
        metavar="<secs>",
        help="seconds to wait for the connection and for each answer; 0 for no limit (%(default)s)",
    )
    add(
        "--sasl-mechanism",
        metavar="<mech>",
        help="SASL mechanisms that may be used, e.g. PLAIN; by default PLAIN with a user and ANONYMOUS without",
    )
    add("--sasl-service-name", metavar="<name>", help="accepted for scripts; no mechanism here uses it")
    add("--ssl-certificate", metavar="<cert>", help="certificate of the client in PEM, for amqps")
    add("--ssl-key", metavar="<key>", help="its private key in PEM")
    add("--ssl-trustfile", metavar="<file>", help="certificates in PEM that broker certificates are checked with")
    add("--ha-admin", action="store_true", help="connect to a backup broker of a qpidd with high availability, too")
    add_completion_option(parser)
    add("--version", action="version", version=f"%(prog)s {__version__}")


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds < NO_LIMIT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds")
    return seconds


def check_connection_options(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End the program if options of the connection contradict each other."""
    if options.ssl_key and not options.ssl_certificate:
        parser.error("missing --ssl-certificate (required by --ssl-key)")


def connection_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options of `qmf.messaging.Connection` for those of `add_connection_options`."""
    given = {
        "sasl_mechanisms": options.sasl_mechanism,
        "ssl_certfile": options.ssl_certificate,
        "ssl_keyfile": options.ssl_key,
        "ssl_trustfile": options.ssl_trustfile,
        "client_properties": {"qpid.ha-admin": 1} if options.ha_admin else None,
    }
    return {name: value for name, value in given.items() if value}


@contextlib.contextmanager
def open_broker(options: argparse.Namespace) -> Iterator[BrokerAgent]:
    """The broker that the options name, until the end of the block.

    Raises:
        QmfError: there is no connection, or the broker has no management.
    """
    agent = BrokerAgent.connect(options.broker, options.timeout or NO_LIMIT, **connection_options(options))
    try:
        yield agent
    finally:
        with contextlib.suppress(QmfError):  # what was asked for is done
            agent.close()


def run_tool(run: Callable[[], int]) -> int:
    """Run a tool.

    Returns:
        its exit code; `FAILED` after an error, which is reported in one line, `INTERRUPTED` after Ctrl-C.
    """
    logging.getLogger("qmf").addHandler(logging.NullHandler())
    try:
        code = run()
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # The reader has ended, e.g. `head`: that is normal. Python would complain when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return OK
    except (QmfError, OSError) as error:
        print(f"Failed: {error}", file=sys.stderr)
        return FAILED
    return code
