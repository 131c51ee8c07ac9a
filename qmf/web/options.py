"""Options of the web server, as frozen values."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path

import attrs

from qmf.connecting import BrokerTarget
from qmf.web.arguments import DEFAULT_PORT
from qmf.web.scopes import ALL_SCOPES, Scope

Network = IPv4Network | IPv6Network


@attrs.frozen(kw_only=True)
class WebLimits:
    """How much one client may ask for. 0 stands for no limit where it says so.

    A client is a user or a token; without users, an address of the network.

    Attributes:
        body: bytes of a request's body.
        rate: requests per second, on average; 0 for no limit.
        burst: requests that may come at once before the rate counts.
        streams: event streams and websockets that may be open at a time.
        queue: notifications that may wait for the reader of a stream; of more, the oldest are dropped and counted.
        history: events that are kept to resume streams from.
        work: lists of objects, references and metrics that are made at a time, for all clients.
        waiting_work: those that wait for their turn; more are refused. Equal ones are made once, and count once.
        connections: open connections, of all clients. The system's limit of open files may make it less.
        address_connections: open connections of an address of the network; of IPv6, of a network of 64 bits.
        header_time: seconds in which the header of a request must come, and TLS be agreed upon.
        read_time: seconds in which the next part of a request's body must come.
        write_time: seconds in which a client must take the next part of an answer.
        page: objects in a page of an answer at most.
        jobs: calls that run as jobs, or are kept until their result was asked for.
        logins: wrong passwords for a user from an address, or wrong tokens from there, before the next try has to wait:
            a second, then twice as long each time, up to a minute.
    """

    body: int = 1024 * 1024
    rate: float = 1000.0
    burst: int = 2000
    streams: int = 100
    queue: int = 1000
    history: int = 10_000
    work: int = 64
    waiting_work: int = 256
    connections: int = 5000
    address_connections: int = 1000
    header_time: float = 10.0
    read_time: float = 30.0
    write_time: float = 60.0
    page: int = 10_000
    jobs: int = 1000
    logins: int = 5


@attrs.frozen(kw_only=True)
class MetricsOptions:
    """What is served as metrics.

    Attributes:
        classes: patterns (``*`` and ``?``) of ``package:class`` or ``class``; empty for every class.
        families: patterns of the names of metric families; empty for all.
        own: with what agents and consoles create on the broker for themselves: their queues, connections and so on.
        limit: series in one answer; a scrape that has more is refused.
        otlp: URL of an OpenTelemetry collector (OTLP over HTTP) that gets metrics and events, or None.
        interval: seconds between exports to it, and between publications of subscriptions.
    """

    classes: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    own: bool = False
    limit: int = 1_000_000
    otlp: str | None = None
    interval: float = 10.0


@attrs.frozen(kw_only=True)
class OidcOptions:
    """An identity provider (OpenID Connect) with which people log in.

    Attributes:
        issuer: the provider's https URL, as its tokens name it.
        client: what this server is called there.
        secret: of this server there; None for a public client.
        user_claim, groups_claim: of its tokens; see `qmf.users.tokens.TokenOptions`.
        request: OAuth scopes that are asked for besides `openid`.
        scopes: of everybody who logs in there.
        grants: more scopes, by group.
    """

    issuer: str
    client: str
    secret: str | None = attrs.field(default=None, repr=False)
    user_claim: str = "sub"
    groups_claim: str = ""
    request: tuple[str, ...] = ("profile",)
    scopes: frozenset[Scope] = frozenset()
    grants: Mapping[str, frozenset[Scope]] = attrs.field(factory=dict)

    def scopes_of(self, groups: Collection[str]) -> frozenset[Scope]:
        """What a user in these groups may do."""
        return self.scopes.union(*(self.grants.get(group, ()) for group in groups))


@attrs.frozen(kw_only=True)
class WebOptions:
    """Options of `create_application`.

    Attributes:
        target: the broker.
        host, port: where the server listens; for the check of hosts and for cookies, too.
        users: names with passwords or hashes of them, as `qmf-broker` reads them; None, and no `oidc` either:
            everybody who reaches the server may do everything.
        grants: scopes of users; a user who is not in it has all.
        oidc: an identity provider with which people log in, or None.
        tokens: file of API tokens, or None.
        rules: file of rules about methods, or None.
        tls: the server speaks TLS.
        hosts: more names under which clients may address the server, besides `host`.
        trusted_proxies: addresses that may say by ``X-Forwarded-For`` for whom they ask; `WebServer` is told, too.
        timeout: seconds to wait for an answer of an agent.
        session_time: seconds without a request after which a session ends.
        session_life: seconds after which a session ends in any case.
        push_dir: folder of durable push registrations of messages; None: there are none.
        push_to: hosts that messages may be pushed to, as names or ``name:port``; None: see `push_hosts`.
        lake: recording of the bus, folder or URL, that reports are about; None: there are none.
        report_time: seconds after which a report is given up.
        limits, metrics: see there.
    """

    target: BrokerTarget
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    users: Mapping[str, str] | None = attrs.field(default=None, repr=False)
    grants: Mapping[str, frozenset[Scope]] = attrs.field(factory=dict)
    oidc: OidcOptions | None = None
    tokens: Path | None = None
    rules: Path | None = None
    tls: bool = False
    hosts: tuple[str, ...] = ()
    trusted_proxies: tuple[Network, ...] = ()
    timeout: float = 10.0
    session_time: float = 3600.0
    session_life: float = 12 * 3600.0
    push_dir: Path | None = None
    push_to: tuple[str, ...] | None = None
    lake: str | None = None
    report_time: float = 120.0
    limits: WebLimits = WebLimits()
    metrics: MetricsOptions = MetricsOptions()

    @property
    def open(self) -> bool:
        """True without users: everybody who reaches the server may do everything."""
        return self.users is None and self.oidc is None

    def scopes_of(self, user: str) -> frozenset[Scope]:
        """What a user of `users` may do."""
        return self.grants.get(user, ALL_SCOPES)

    @property
    def push_hosts(self) -> tuple[str, ...] | None:
        """Hosts that messages may be pushed to; None for any.

        Where there are users, they must not reach what only this machine reaches: then hosts have to be named.
        """
        if self.push_to is None:
            return None if self.open else ()
        return tuple(name.lower() for name in self.push_to)
