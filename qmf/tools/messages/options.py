"""Options that `drain` and `spout` share."""

from __future__ import annotations

import argparse

from qmf._completion import add_completion_option
from qmf._option_values import number, whole_number
from qmf._version import __version__
from qmf.messaging.addresses import parse_map


def add_connection_options(parser: argparse.ArgumentParser) -> None:
    """Add the options about the connection, and those that every tool has."""
    add = parser.add_argument
    add("-b", "--broker", default="localhost", metavar="URL", help="broker (%(default)s)")
    add("-r", "--reconnect", action="store_true", help="connect again when the connection is lost")
    add("-i", "--reconnect-interval", type=number, default=3.0, metavar="SECONDS", help="time between attempts (3)")
    add("-l", "--reconnect-limit", type=whole_number, metavar="NUMBER", help="how many attempts")
    add(
        "--connection-options",
        default="{}",
        metavar="MAP",
        help="such as '{username: guest, password: guest, heartbeat: 10}'",
    )
    add("-v", "--verbose", action="store_true", help="log what happens")
    add_completion_option(parser)
    add("--version", action="version", version=f"%(prog)s {__version__}")


def connection_options(options: argparse.Namespace) -> dict[str, object]:
    """What `Connection` is given; names may be written with hyphens."""
    given = parse_map(options.connection_options)
    if options.reconnect:
        given["reconnect"] = True
        given["reconnect_interval"] = options.reconnect_interval
        given["reconnect_limit"] = options.reconnect_limit
    return {name.replace("-", "_"): value for name, value in given.items()}
