"""Receive messages from an address and print them.

drain -a hello-world
drain -a 'topic-exchange/*.news' -t 30
drain -b amqps://broker.example.org 'hello-queue; {mode: browse}'
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Mapping, Sequence

from qmf._option_values import number, whole_number
from qmf.errors import QmfError
from qmf.messaging import AcknowledgementUnknown, Connection, Empty, Message
from qmf.tools.messages.options import add_connection_options, connection_options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    parser = build_parser()
    options = parser.parse_intermixed_args(argv)
    if (options.address is None) == (options.positional is None):
        parser.error("one address is required")
    options.address = options.address or options.positional
    if options.verbose:
        logging.basicConfig(level=logging.INFO)
    try:
        drain(options)
    except KeyboardInterrupt:
        pass
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output has ended
    except QmfError as error:
        print(f"drain: {error}", file=sys.stderr)
        return 1
    return 0


def drain(options: argparse.Namespace) -> None:
    """Print and acknowledge messages until none arrives in time."""
    with Connection(options.broker, **connection_options(options)) as connection:
        session = connection.session()
        receiver = session.receiver(options.address)
        logging.info("receiving from %s", options.address)
        count = 0
        while options.count is None or count < options.count:
            try:
                message = receiver.fetch(None if options.forever else options.timeout)
            except Empty:
                break
            print(options.format % {"M": text_of(message), "P": message.properties, "C": message.content}, flush=True)
            try:
                session.acknowledge()
            except AcknowledgementUnknown as error:  # with --reconnect: the message may come again, but others wait
                print(f"drain: {error}", file=sys.stderr)
            count += 1


def text_of(message: Message) -> str:
    """The message as the manual shows it; the subject is the property qpid.subject."""
    properties = {} if message.subject is None else {"qpid.subject": message.subject}
    content = "" if message.content is None else plain(message.content)
    return f"Message(properties={plain({**properties, **message.properties})}, content='{content}')"


def plain(value: object) -> str:
    """Maps and lists without quotes, bytes as text."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{name}:{plain(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(plain, value)) + "]"
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def build_parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="drain",
        allow_abbrev=False,
        usage="%(prog)s [options] [-a] ADDRESS",
        description="Receive messages from an address.",
    )
    add = parser.add_argument
    add("positional", nargs="?", help=argparse.SUPPRESS)
    add("-a", "--address", help="where to receive from")
    add("-c", "--count", type=whole_number, metavar="NUMBER", help="stop after so many messages")
    add("-t", "--timeout", type=number, default=0.0, metavar="SECONDS", help="how long to wait for a message (0)")
    add("-f", "--forever", action="store_true", help="wait for messages without a limit")
    add(
        "-p",
        "--print",
        dest="format",
        default="%(M)s",
        metavar="FORMAT",
        help="%%(M)s message, %%(P)s properties, %%(C)s content",
    )
    add_connection_options(parser)
    return parser
