"""The command line of `qmf-web`. Loads next to nothing, so that `--help` is quick and needs no extra."""

from __future__ import annotations

import argparse
import ipaddress
from pathlib import Path

from qmf._completion import add_completion_option
from qmf._option_values import count, number, port, seconds
from qmf._version import __version__
from qmf.connecting import add_connection_options

#: Port where none is named.
DEFAULT_PORT = 8672

_EPILOG = (
    "Without -b, an embedded broker with a host agent is started. Elsewhere than on 127.0.0.1 it listens only with "
    "--users and --tls-cert. Stop it with Ctrl-C."
)


def parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    found = argparse.ArgumentParser(
        prog="qmf-web",
        description="Pages, a REST interface and metrics for the agents, objects and messages of a broker.",
        epilog=_EPILOG,
        allow_abbrev=False,
    )
    add_connection_options(
        found.add_argument_group("the broker"),
        broker="URL of the broker (default: an embedded one)",
    )
    _add_server(found.add_argument_group("the server"))
    _add_access(found.add_argument_group("who may"))
    _add_provider(found.add_argument_group("an identity provider (OpenID Connect) with which people log in"))
    _add_limits(found.add_argument_group("limits for each client"))
    _add_messages(found.add_argument_group("messages"))
    _add_metrics(found.add_argument_group("metrics"))
    _add_reports(found.add_argument_group("reports"))
    add = found.add_argument
    add(
        "--interval",
        type=seconds,
        default=2.0,
        metavar="SECONDS",
        help="between samples of the embedded host agent (%(default)g)",
    )
    add(
        "--timeout",
        type=seconds,
        default=10.0,
        metavar="SECONDS",
        help="wait for answers of agents (%(default)g)",
    )
    add("-v", "--verbose", action="store_true", help="log more")
    add_completion_option(found)
    add("--version", action="version", version=f"%(prog)s {__version__}")
    return found


def _add_server(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (%(default)s)")
    add("-p", "--port", type=port, default=DEFAULT_PORT, help="TCP port; 0 for any free one (%(default)s)")
    add("--tls-cert", metavar="FILE", type=Path, help="certificate of this server in PEM: speak https")
    add("--tls-key", metavar="FILE", type=Path, help="its private key, if it is not in its file")
    add(
        "--server-name",
        metavar="NAME",
        action="append",
        default=[],
        help="another name under which clients address this server, e.g. behind a proxy; may be repeated",
    )
    add(
        "--trusted-proxy",
        metavar="ADDRESS|NETWORK",
        type=_network,
        action="append",
        default=[],
        help="believe what this proxy says about its clients (X-Forwarded-For, X-Forwarded-Proto); may be repeated",
    )
    add(
        "--allow-unprotected",
        action="store_true",
        help="listen elsewhere than on 127.0.0.1, or serve a proxy, without users; or elsewhere without TLS",
    )


def _add_access(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--users", metavar="FILE", type=Path, help="allow only these users: lines of qmf-broker --hash-password NAME")
    add(
        "--grant",
        metavar="USER=SCOPES",
        action="append",
        default=[],
        help="scopes of a user, or of a group of --acl-file: read, call, set, messages, separated by commas; default: "
        "all. May be repeated",
    )
    add(
        "--acl-file",
        metavar="FILE",
        type=Path,
        help="rules that decide who may call which methods: lines such as `acl allow GROUP access method name=purge "
        "schemaclass=queue`; read again when it changes",
    )
    add("--tokens", metavar="FILE", type=Path, help="API tokens: lines of --new-token; read again when it changes")
    add("--new-token", metavar="NAME", help="print a new token and its line for the file of tokens, then end")
    add("--scopes", metavar="SCOPES", default="read", help="scopes of the new token (%(default)s)")
    add("--days", metavar="N", type=count, help="days that the new token is valid; default: for ever")
    add("--audit", metavar="FILE", type=Path, help="append calls and refusals to this file; default: standard error")


def _add_provider(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--oidc", metavar="URL", help="https URL of the provider, as its tokens name the issuer")
    add("--oidc-client", metavar="NAME", help="what this server is called there (client id)")
    add("--oidc-secret-file", metavar="FILE", type=Path, help="its secret there, in the first line; default: none")
    add("--oidc-user-claim", metavar="CLAIM", default="sub", help="claim with the name of the user (%(default)s)")
    add("--oidc-groups-claim", metavar="CLAIM", default="", help="claim with the groups of the user; default: none")
    add(
        "--oidc-request",
        metavar="SCOPE",
        action="append",
        help="OAuth scope to ask for besides openid, so that the claims come; may be repeated (default: profile)",
    )
    add(
        "--oidc-scopes",
        metavar="SCOPES",
        help="what everybody may do who logs in there: as for --grant; default: nothing",
    )
    add(
        "--oidc-grant",
        metavar="GROUP=SCOPES",
        action="append",
        default=[],
        help="what else the members of a group may do; may be repeated",
    )


def _add_limits(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--max-body", metavar="BYTES", type=count, default=1024 * 1024, help="bytes of a request (%(default)s)")
    add(
        "--max-rate",
        metavar="N",
        type=number,
        default=1000.0,
        help="requests per second; 0 for no limit (%(default)g)",
    )
    add("--max-streams", metavar="N", type=count, default=100, help="open event streams and websockets (%(default)s)")
    add(
        "--max-connections",
        metavar="N",
        type=count,
        default=5000,
        help="connections, of all clients together (%(default)s)",
    )
    add(
        "--max-address-connections",
        metavar="N",
        type=count,
        default=1000,
        help="connections of one address; of more, those that wait are closed (%(default)s)",
    )
    add(
        "--header-time",
        metavar="SECONDS",
        type=seconds,
        default=10.0,
        help="for the header of a request to come (%(default)g)",
    )


def _add_messages(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add("--push-dir", metavar="DIR", type=Path, help="keep durable push registrations in this folder")
    add(
        "--push-to",
        metavar="HOST",
        action="append",
        help="messages may be pushed to this host, or HOST:PORT; default: any, but none with --users. May be repeated",
    )


def _add_reports(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--lake",
        metavar="DIR",
        help="recording of the bus, folder or URL, that reports are about; default: the context's",
    )
    add(
        "--report-time",
        metavar="SECONDS",
        type=seconds,
        default=120.0,
        help="after which a report is given up (%(default)g)",
    )


def _add_metrics(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    add(
        "--metrics",
        metavar="CLASS",
        action="append",
        default=[],
        help="only these classes: patterns (* and ?) of class or package:class; may be repeated",
    )
    add(
        "--metrics-family",
        metavar="NAME",
        action="append",
        default=[],
        help="only metric families with these names: patterns; may be repeated",
    )
    add(
        "--metrics-own",
        action="store_true",
        help="with what agents and consoles create on the broker for themselves: their queues, connections and so on",
    )
    add("--metrics-limit", metavar="N", type=count, default=1_000_000, help="series in one answer (%(default)s)")
    add(
        "--metrics-interval",
        metavar="SECONDS",
        type=seconds,
        default=10.0,
        help="between samples (%(default)g)",
    )
    add("--otlp", metavar="URL", help="export metrics and events to this OpenTelemetry collector, over HTTP")


def _network(text: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a proxy: expected an address, such as 10.0.0.1, or a network, such as 10.0.0.0/8"
        ) from None
