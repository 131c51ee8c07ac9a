"""Where the broker of a domain is, by the SRV records of the DNS (RFC 2782), for domains that may be looked up."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

import attrs

from qmf._extras import install_hint
from qmf.broker.nodes.relay_addresses import normal_domain
from qmf.bus.url import BusUrl

if TYPE_CHECKING:
    from dns.asyncresolver import Resolver

#: Services of AMQP with their transports, in the order in which they are asked for; and whether they have TLS.
_SERVICES = (("_amqps._tcp", True), ("_amqp._tcp", False))

#: Seconds for the answer to one question.
_TIMEOUT = 5.0

#: Seconds for which an answer is used, at least and at most, whatever its time to live.
_LEAST, _MOST = 5.0, 3600.0


class LookupFailed(Exception):
    """The broker of a domain cannot be found in the DNS; says why."""


@attrs.frozen
class DomainServers:
    """Where the broker of a domain is.

    Attributes:
        urls: in the order in which they are to be tried.
        lifetime: seconds after which it is to be looked up again.
    """

    urls: tuple[BusUrl, ...]
    lifetime: float


def may_look_up(domain: str, allowed: Sequence[str]) -> bool:
    """True if a domain may be looked up: it is named, or ends like ``*.example.org``."""
    names = [normal_domain(name) for name in allowed]
    return domain in names or any(name.startswith("*.") and domain.endswith(name[1:]) for name in names)


class SrvLookup:
    """Asks a DNS server."""

    def __init__(self, resolver: str) -> None:
        """Make a lookup.

        Args:
            resolver: host and port of the server; empty for those of the system.
        """
        self._resolver = resolver

    async def find(self, domain: str) -> DomainServers:
        """The broker of a domain: by TLS, if there is a record for that.

        Raises:
            LookupFailed: there are no records, or the server cannot be asked.
        """
        try:
            from dns.exception import DNSException
            from dns.rdtypes.IN.SRV import SRV
            from dns.resolver import NXDOMAIN, NoAnswer
        except ImportError as error:
            raise LookupFailed(f"SRV records need a library that is not installed: {install_hint('srv')}") from error
        try:
            resolver = self._make()
            for service, tls in _SERVICES:
                try:
                    answer = await resolver.resolve(f"{service}.{domain}", "SRV", lifetime=_TIMEOUT)
                except (NXDOMAIN, NoAnswer):
                    continue
                records = [each for each in answer if isinstance(each, SRV)]
                records.sort(key=lambda each: (each.priority, -random.random() * (each.weight + 1)))
                urls = tuple(
                    BusUrl(host=each.target.to_text(omit_final_dot=True), port=each.port, tls=tls)
                    for each in records
                    if each.target.to_text() != "."
                )
                if not urls:
                    raise LookupFailed(f"{service}.{domain} says that the domain has no such service")
                ttl = 0 if answer.rrset is None else answer.rrset.ttl
                return DomainServers(urls, min(max(float(ttl), _LEAST), _MOST))
        except (DNSException, OSError, ValueError) as error:
            raise LookupFailed(f"the DNS cannot be asked about {domain}: {error}") from error
        raise LookupFailed(f"no SRV record of {' or '.join(service for service, _ in _SERVICES)} for {domain}")

    def _make(self) -> Resolver:
        from dns.asyncresolver import Resolver

        if not self._resolver:
            return Resolver()
        host, _, port = self._resolver.rpartition(":")
        resolver = Resolver(configure=False)
        resolver.nameservers = [host.strip("[]") or self._resolver]
        resolver.port = int(port)
        return resolver
