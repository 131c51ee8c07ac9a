"""The command line of `qpid-route`: the options of release 1.40, and ours."""

from __future__ import annotations

import argparse

from qmf._option_values import whole_number_between
from qmf.connecting import UrlAction
from qmf.tools.connecting import ToolParser, add_connection_options

#: Transports of links.
TRANSPORTS = ("tcp", "ssl", "rdma")
#: What stands for a credit without limit.
UNLIMITED = 0xFFFFFFFF
_MOST_ACKNOWLEDGED = 0xFFFF

USAGE = """qpid-route [OPTIONS] dynamic add <dest-broker> <src-broker> <exchange> [tag] [exclude-list] [mechanism]
       qpid-route [OPTIONS] dynamic del <dest-broker> <src-broker> <exchange>

       qpid-route [OPTIONS] route add   <dest-broker> <src-broker> <exchange> <routing-key> [tag] [exclude-list] \
[mechanism]
       qpid-route [OPTIONS] route del   <dest-broker> <src-broker> <exchange> <routing-key>
       qpid-route [OPTIONS] queue add   <dest-broker> <src-broker> <exchange> <queue> [mechanism]
       qpid-route [OPTIONS] queue del   <dest-broker> <src-broker> <exchange> <queue>
       qpid-route [OPTIONS] route list  [<dest-broker>]
       qpid-route [OPTIONS] route flush [<dest-broker>]
       qpid-route [OPTIONS] route map   [<broker>]

       qpid-route [OPTIONS] link add  <dest-broker> <src-broker> [mechanism]
       qpid-route [OPTIONS] link del  <dest-broker> <src-broker>
       qpid-route [OPTIONS] link list [<dest-broker>]"""

_EPILOG = """\
A broker is [user/password@]host[:port] or amqp[s]://[user:password@]host[:port]; without one it is localhost. For the
links that are created, user and password of the other broker are what the link logs in with.

examples:
  qpid-route dynamic add localhost:10003 localhost:10004 fed.topic
  qpid-route route add localhost:10001 localhost:10002 amq.topic 'global.#'
  qpid-route -s queue add headquarters localhost amq.fanout orders
  qpid-route route map localhost:10001 --dot | dot -Tsvg -o routes.svg

exit codes: 0 success, 1 failure, 255 wrong arguments, 2 wrong options."""


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = ToolParser(
        prog="qpid-route",
        usage=USAGE,
        description="Show and change links between brokers, and the routes on them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("words", nargs="*", action=UrlAction, default=[], metavar="command", help="see above")
    add_connection_options(
        parser, timeout_names=("--timeout",), mechanism_names=("--client-sasl-mechanism", "--sasl-mechanism")
    )
    add = parser.add_argument_group("Route Options").add_argument
    add("-v", "--verbose", action="store_true", help="say what is done")
    add("-q", "--quiet", action="store_true", help="no error for a route that exists or is missing; no wait for links")
    add("-d", "--durable", action="store_true", help="what is added stays over a restart of the broker")
    add("-e", "--del-empty-link", action="store_true", help="delete the link with its last route")
    add("-s", "--src-local", action="store_true", help="connect to the source, which pushes to the destination")
    add(
        "--ack",
        type=whole_number_between(0, _MOST_ACKNOWLEDGED),
        default=0,
        metavar="<n>",
        help="acknowledge messages in batches of so many; 0 for no acknowledgement by qpidd (%(default)s)",
    )
    add(
        "--credit",
        type=whole_number_between(0, UNLIMITED),
        default=UNLIMITED,
        metavar="<msgs>",
        help="messages in flight at most; 0 for any number, the default",
    )
    add("-t", "--transport", default="tcp", metavar="<transport>", help="of links: tcp, ssl or rdma (%(default)s)")
    add(
        "--max-hops",
        type=whole_number_between(1, UNLIMITED),
        metavar="<n>",
        help="a message that has left so many brokers by links is not forwarded; by our brokers",
    )
    add("--dot", action="store_true", help="route map: print a graph in the language of Graphviz")
    return parser
