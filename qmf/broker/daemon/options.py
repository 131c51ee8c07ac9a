"""The command line of `qmf-broker`."""

from __future__ import annotations

import argparse
import math

from qmf._version import __version__
from qmf.broker.nodes.settings import QueueLimits
from qmf.bus.url import AMQP_PORT

#: Longest interval in seconds that the management schema can express.
MAX_INTERVAL = 65_535


def options_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    limits = QueueLimits()
    parser = argparse.ArgumentParser(
        prog="qmf-broker",
        description="A small AMQP 1.0 broker with the exchanges that QMF needs. Stop it with Ctrl-C.",
    )
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (%(default)s: this machine only)")
    parser.add_argument("--port", type=_port, default=AMQP_PORT, help="TCP port; 0 for any free one (%(default)s)")
    parser.add_argument("--queue", action="append", default=[], metavar="NAME", help="create a queue of this name")
    parser.add_argument(
        "--domain", action="append", default=[], metavar="NAME", help="create the exchanges of this QMF domain"
    )
    parser.add_argument(
        "--max-messages", type=_positive, default=limits.count, metavar="N", help="messages per queue (%(default)s)"
    )
    parser.add_argument(
        "--max-bytes", type=_positive, default=limits.size, metavar="N", help="bytes per queue (%(default)s)"
    )
    parser.add_argument("--users", metavar="FILE", help="allow only these users: lines name:hash, or name:password")
    parser.add_argument(
        "--hash-password",
        nargs="?",
        const="",
        metavar="NAME",
        help="ask for a password, print its line for --users, and end",
    )
    parser.add_argument("--tls-cert", metavar="FILE", help="certificate chain in PEM: accept TLS only")
    parser.add_argument("--tls-key", metavar="FILE", help="private key in PEM; by default in the certificate's file")
    parser.add_argument(
        "--no-management", dest="management", action="store_false", help="run without the broker's own QMF agent"
    )
    parser.add_argument(
        "--management-interval",
        type=_seconds,
        default=10.0,
        metavar="SECONDS",
        help="time between two publications of that agent (%(default)g)",
    )
    parser.add_argument("--verbose", action="store_true", help="log to standard error what happens")
    parser.add_argument("--version", action="version", version=f"qmf-broker {__version__}")
    return parser


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: a number from 0 to 65535")
    return int(text)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= MAX_INTERVAL:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0, up to {MAX_INTERVAL}")
    return seconds
