"""The command line of `qpid-config`: the options of release 1.40, those of the manual, and ours."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from qmf._option_values import whole_number
from qmf.tools.connecting import ToolParser, add_connection_options, add_own_option, check_connection_options

LISTED = ("exchanges", "queues")
COMMANDS = (*LISTED, "add", "del", "bind", "unbind", "reload-acl", "list", "log", "shutdown")
#: The classes of brokers and their modules: those that have no objects now are known by their names only.
CLASSES = (
    *("acl", "agent", "binding", "bridge", "broker", "cluster", "connection", "domain", "exchange", "habroker"),
    *("incoming", "journal", "link", "managementsetupstate", "memory", "outgoing", "queue", "queuepolicy", "session"),
    *("store", "subscription", "system", "topic", "topicpolicy", "vhost"),
)
EXCHANGE_TYPES = ("direct", "fanout", "topic", "headers", "xml", "mqtt")
POLICIES = ("none", "reject", "flow-to-disk", "ring", "ring-strict")
ORDERS = ("fifo", "lvq", "lvq-no-browse")
REPLICATION = ("none", "configuration", "all")
SHELLS = ("bash", "zsh", "fish")

_USAGE = """qpid-config [OPTIONS]
       qpid-config [OPTIONS] exchanges [filter-string]
       qpid-config [OPTIONS] queues    [filter-string]
       qpid-config [OPTIONS] add exchange <type> <name> [AddExchangeOptions]
       qpid-config [OPTIONS] del exchange <name>
       qpid-config [OPTIONS] add queue <name> [AddQueueOptions]
       qpid-config [OPTIONS] del queue <name> [DelQueueOptions]
       qpid-config [OPTIONS] bind   <exchange-name> <queue-name> [binding-key]
                 <for type xml>     [-f -|filename]
                 <for type headers> [all|any] k1=v1 [, k2=v2...]
       qpid-config [OPTIONS] unbind <exchange-name> <queue-name> [binding-key]
       qpid-config [OPTIONS] reload-acl
       qpid-config [OPTIONS] add <type> <name> [--argument <property-name>=<property-value>]
       qpid-config [OPTIONS] del <type> <name>
       qpid-config [OPTIONS] list <type> [--show-property <property-name>]
       qpid-config [OPTIONS] log [<logstring>]
       qpid-config [OPTIONS] shutdown"""

_EPILOG = """\
examples:
  qpid-config add queue orders --max-queue-count 1000 --limit-policy ring
  qpid-config add exchange direct prices -a localhost:5672
  qpid-config exchanges -r -b guest/guest@broker-host:10000
  qpid-config queues --json | jq -r '.[].name'
  qpid-config add domain berlin --argument url=amqp://berlin.example.com
  qpid-config add outgoing orders-to-berlin --argument domain=berlin --argument source=orders --argument target=orders

exchange types: direct, fanout, topic, headers, xml (selects by an XQuery), mqtt (topics of MQTT)

-b before a listing command, before an option or at the end means --bindings, as in the manual; otherwise it takes the
broker's address, as in release 1.40.

exit codes: 0 success, 1 failure or nothing found, 2 wrong usage."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line, without the meaning of ``-b`` that `parse` decides."""
    parser = ToolParser(
        prog="qpid-config",
        usage=_USAGE,
        description="Show and change the queues, exchanges and bindings of a broker.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", metavar="command", help="see above; without one a summary is shown")
    add_connection_options(parser, "-b", "--broker", "-a", "--broker-addr")
    _add_listing_options(parser)
    _add_options_of_both(parser)
    _add_queue_options(parser)
    exchanges = parser.add_argument_group("Options for Adding Exchanges")
    exchanges.add_argument(
        "--sequence", action="store_true", help="number the messages, in their property qpid.msg_sequence"
    )
    exchanges.add_argument(
        "--ive", action="store_true", help="keep the last message, and give it to each queue when it is bound"
    )
    deleting = parser.add_argument_group("Options for Deleting Queues")
    add = deleting.add_argument
    add("--force", action="store_true", help="delete it even with messages or consumers")
    add("--force-if-not-empty", action="store_true", help="delete it even with messages")
    add("--force-if-used", action="store_true", help="delete it even with consumers")
    binding = parser.add_argument_group("Options for Declaring Bindings")
    binding.add_argument(
        "-f", "--file", metavar="<file.xq>", help="file with the XQuery of a binding to an XML exchange; - for stdin"
    )
    return parser


def _add_listing_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("Options for Listing").add_argument
    add("-r", "--recursive", "--bindings", action="store_true", help="show the bindings of queues or exchanges (-b)")
    add("--ignore-default", action="store_true", help="leave out the default exchange")
    add(
        "--show-property",
        dest="properties",
        action="append",
        default=[],
        metavar="<name>",
        help="show this property with list; several times",
    )
    add_own_option(add)
    add("--json", action="store_true", help="print JSON")
    add("--dry-run", action="store_true", help="check and print what would be changed, and change nothing")
    add("--completion", choices=SHELLS, metavar="<shell>", help=f"print completion for {', '.join(SHELLS)}")


def _add_options_of_both(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("Options for Adding Exchanges and Queues").add_argument
    add(
        "--alternate-exchange",
        metavar="<name>",
        help="exchange for messages that an exchange cannot route, or that a queue loses by rejection or deletion",
    )
    add("--durable", action="store_true", help="it stays over a restart of the broker")
    add("--replicate", choices=REPLICATION, metavar="<level>", help=f"in a qpidd with HA: {', '.join(REPLICATION)}")
    add(
        "--argument",
        dest="arguments",
        action="append",
        default=[],
        metavar="<name=value>",
        help="any other property or argument; several times",
    )


def _add_queue_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument_group("Options for Adding Queues").add_argument
    for name, text in (
        ("--file-count", "[legacystore] files of the queue's journal; for durable queues"),
        ("--file-size", "[legacystore] pages of 64 KiB in such a file"),
        ("--efp-partition-num", "[linearstore] partition of its empty files"),
        ("--efp-pool-file-size", "[linearstore] KiB in a file"),
        ("--wcache-page-size", "[linearstore] KiB in a page of the write buffer: a power of 2 from 4"),
        ("--wcache-num-pages", "[linearstore] pages of the write buffer"),
        ("--max-queue-size", "bytes in the queue at most"),
        ("--max-queue-count", "messages in the queue at most"),
        ("--flow-stop-size", "stop senders when more bytes are in the queue"),
        ("--flow-resume-size", "let senders go on when fewer bytes are in the queue"),
        ("--flow-stop-count", "stop senders when more messages are in the queue"),
        ("--flow-resume-count", "let senders go on when fewer messages are in the queue"),
    ):
        add(name, type=whole_number, metavar="<n>", help=text)
    add(
        "--limit-policy",
        choices=POLICIES,
        metavar="<policy>",
        help="what a full queue does: none (the broker's default), reject, flow-to-disk (page messages to the disk), "
        "ring (drop the oldest), ring-strict (the same, but reject while the oldest is acquired)",
    )
    add(
        "--order",
        choices=ORDERS,
        metavar="<order>",
        help="fifo; lvq (the last value of each key); lvq-no-browse (the same, also if it was browsed)",
    )
    add("--lvq-key", metavar="<key>", help="last value queue: name of the property that is the key")
    add(
        "--generate-queue-events",
        type=int,
        choices=(0, 1, 2),
        metavar="<n>",
        help="1: an event for each message that comes; 2: for those that go as well",
    )
    add("--cluster-durable", action="store_true", help="accepted for scripts; brokers have no clusters any more")
    add("--group-header", metavar="<name>", help="message groups: name of the property that identifies the group")
    add("--shared-groups", action="store_true", help="let several consumers take turns at a group")
    add("--start-replica", metavar="<url>", help="replicate the queue of the same name at this broker (qpidd with HA)")


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    """The options, with the words of the command as `words`. Ends the program after wrong usage."""
    parser = build_parser()
    options = parser.parse_intermixed_args(with_bindings_flag(sys.argv[1:] if argv is None else argv))
    check_connection_options(parser, options)
    if options.words and options.words[0] not in COMMANDS:
        parser.error(f"unknown command {options.words[0]!r}; there are {', '.join(COMMANDS)}")
    options.usage_error = parser.error
    return options


def with_bindings_flag(argv: Sequence[str]) -> list[str]:
    """The arguments with ``--bindings`` for a ``-b`` that has no address.

    The manual's ``-b`` shows bindings, that of release 1.40 takes the broker's address.
    """
    words = list(argv)
    for at, word in enumerate(words):
        following = words[at + 1] if at + 1 < len(words) else "-"
        if word == "-b" and (following.startswith("-") or following in LISTED):
            words[at] = "--bindings"
    return words
