"""The options of `qmf-broker` about relaying."""

from __future__ import annotations

import argparse

from qmf.broker.daemon.values import duration, yes_or_no
from qmf.broker.relay.options import TIMEOUT, RelayOptions, UnknownDomains
from qmf.errors import CallerError


def add_relay_options(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument_group("relaying").add_argument
    add(
        "--relay",
        type=yes_or_no,
        default=False,
        metavar="yes|no",
        help="relay messages to name@domain, for the domains that have a relay (no)",
    )
    add(
        "--relay-local-domain",
        action="append",
        default=[],
        metavar="DOMAIN",
        help="a domain that stands for this broker, as localhost does; may be repeated",
    )
    add(
        "--relay-unknown-domains",
        choices=[each.value for each in UnknownDomains],
        default=UnknownDomains.REFUSE.value,
        help="what is done with messages to a domain without a relay (%(default)s)",
    )
    add(
        "--relay-timeout",
        type=duration,
        default=TIMEOUT,
        metavar="SECONDS",
        help="time that a message may wait for its transfer, unless its relay says otherwise (%(default)g)",
    )
    add(
        "--relay-agent",
        action="append",
        default=[],
        metavar="USER",
        help="a user whose messages may name other users: the transfer agent of another broker; may be repeated",
    )
    add(
        "--relay-srv-domain",
        action="append",
        default=[],
        metavar="DOMAIN",
        help="a domain whose broker may be looked up in the DNS, or *.DOMAIN for those below one; may be repeated",
    )
    add("--relay-resolver", default="", metavar="HOST:PORT", help="the DNS server that is asked (those of the system)")


def relay_options(options: argparse.Namespace) -> RelayOptions:
    """What the options say.

    Raises:
        CallerError: they contradict each other, or are wrong.
    """
    if not options.relay:
        for name in ("local_domain", "srv_domain", "resolver"):
            if getattr(options, f"relay_{name}"):
                raise CallerError(f"--relay-{name.replace('_', '-')} needs --relay yes")
    _, colon, port = options.relay_resolver.rpartition(":")
    if options.relay_resolver and not (colon and port.isdecimal() and int(port) < 1 << 16):
        raise CallerError(f"--relay-resolver must be a host and a port, not {options.relay_resolver!r}")
    return RelayOptions(
        enabled=options.relay,
        local_domains=options.relay_local_domain,
        unknown_domains=UnknownDomains(options.relay_unknown_domains),
        timeout=options.relay_timeout,
        agents=options.relay_agent,
        srv_domains=options.relay_srv_domain,
        resolver=options.relay_resolver,
    )
