"""Send messages to an address.

spout -a hello-world
spout -a topic-exchange/usa.news -c 10 -P language=en 'A headline'
spout -a server -R answers -M method=status -M verbose=no
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import uuid
from collections.abc import Sequence

from qmf._option_values import number, whole_number
from qmf.errors import QmfError
from qmf.messaging import Connection, Message
from qmf.tools.messages.options import add_connection_options, connection_options


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    parser = build_parser()
    options = parser.parse_intermixed_args(argv)
    if options.address is None:
        if not options.content:
            parser.error("an address is required")
        options.address = options.content.pop(0)
    if options.verbose:
        logging.basicConfig(level=logging.INFO)
    try:
        spout(options)
    except KeyboardInterrupt:
        pass
    except QmfError as error:
        print(f"spout: {error}", file=sys.stderr)
        return 1
    return 0


def spout(options: argparse.Namespace) -> None:
    """Send the messages, each when the one before it has arrived."""
    spout_id = options.id or str(uuid.uuid4())
    end = None if options.timeout is None else time.monotonic() + options.timeout
    with Connection(options.broker, **connection_options(options)) as connection:
        sender = connection.session().sender(options.address)
        count = 0
        while (options.count == 0 or count < options.count) and (end is None or time.monotonic() < end):
            message = Message(content_of(options), subject=options.subject, reply_to=options.reply_to)
            message.durable = options.durable
            message.properties = {"spout-id": f"{spout_id}:{count}", **dict(map(pair, options.properties))}
            sender.send(message)
            logging.info("sent %s", message)
            count += 1


def content_of(options: argparse.Namespace) -> str | dict[str, str | None]:
    """A map if entries of it were given, otherwise text."""
    text = " ".join(options.content)
    if not options.entries:
        return text
    return {**({"text": text} if text else {}), **dict(map(pair, options.entries))}


def pair(text: str) -> tuple[str, str | None]:
    """NAME=VALUE, or NAME for no value."""
    name, separator, value = text.partition("=")
    return name, value if separator else None


def build_parser() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        prog="spout",
        allow_abbrev=False,
        usage="%(prog)s [options] [-a] ADDRESS [CONTENT ...]",
        description="Send messages to an address.",
    )
    add = parser.add_argument
    add("content", nargs="*", help=argparse.SUPPRESS)
    add("-a", "--address", help="where to send to")
    add("-c", "--count", type=whole_number, default=1, metavar="NUMBER", help="how many (1); 0 for no limit")
    add("-t", "--timeout", type=number, metavar="SECONDS", help="stop after this time")
    add("-I", "--id", help="used in the property spout-id instead of a generated one")
    add("-S", "--subject", help="subject of the messages")
    add("-R", "--reply-to", metavar="ADDRESS", help="where answers go")
    add("-d", "--durable", action="store_true", help="keep the messages over a restart of the broker")
    add(
        "-P",
        "--property",
        dest="properties",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a property of the messages",
    )
    add(
        "-M",
        "--map",
        dest="entries",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="an entry of the content, which then is a map",
    )
    add_connection_options(parser)
    return parser
