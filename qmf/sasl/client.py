"""Which mechanism a client uses: the strongest that the server offers, it has credentials for, and is permitted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from qmf._extras import install_hint
from qmf.sasl.anonymous import AnonymousClient
from qmf.sasl.channel import Channel
from qmf.sasl.external import ExternalClient
from qmf.sasl.gssapi import GSSAPI, GssapiClient
from qmf.sasl.mechanism import ClientMechanism, SaslError
from qmf.sasl.oauthbearer import OauthBearerClient
from qmf.sasl.plain import PlainClient
from qmf.sasl.scram import PLUS, SCRAM_NAMES, ScramClient, scram_is_installed

#: All mechanisms of clients, the strongest first.
CLIENT_MECHANISMS = (
    GSSAPI,
    "OAUTHBEARER",
    *(name + PLUS for name in SCRAM_NAMES),
    *SCRAM_NAMES,
    "PLAIN",
    "EXTERNAL",
    "ANONYMOUS",
)
#: Those that send what anybody who reads the connection could use.
_READABLE = frozenset({"PLAIN", "OAUTHBEARER"})
_NO_USER = "a user is needed"


class NoMechanism(SaslError):
    """Server and client have no mechanism in common; the message says what was offered, and what is missing."""


@attrs.frozen
class SaslCredentials:
    """What a client can prove who it is with, besides the certificate of its TLS.

    Attributes:
        username, password: None for no user.
        token: access token, or None.
        host: of the server.
    """

    username: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    token: str | None = attrs.field(default=None, repr=False)
    host: str = ""

    @property
    def anonymous(self) -> bool:
        """True without a user and a token."""
        return self.username is None and self.token is None


def choose_mechanism(
    offer: Iterable[str],
    credentials: SaslCredentials,
    channel: Channel,
    permitted: Sequence[str] | None = None,
    ticket: GssapiClient | None = None,
) -> ClientMechanism:
    """The mechanism for an exchange.

    A client with a user becomes anonymous, PLAIN and OAUTHBEARER are used on a connection that others could read, and
    EXTERNAL and GSSAPI are used at all, only if `permitted` names them.

    Args:
        offer: names of the server's mechanisms.
        credentials: of the client.
        channel: the connection.
        permitted: names of mechanisms that may be used; None for all.
        ticket: of Kerberos for the server; None for none.

    Raises:
        NoMechanism: there is none.
        SaslError: name or password cannot be used in the strongest one.
    """
    offer = [name.upper() for name in offer]
    allowed = None if permitted is None else {name.upper() for name in permitted}
    #: Why mechanisms that the server offers cannot be used, with their names.
    obstacles: dict[str, list[str]] = {}
    for name in CLIENT_MECHANISMS:
        if name not in offer or (allowed is not None and name not in allowed):
            continue
        if name == GSSAPI and ticket is not None:
            return ticket
        reason = _obstacle(name, credentials, channel, named=allowed is not None)
        if reason is None:
            return _make(name, credentials, channel)
        obstacles.setdefault(reason, []).append(name)
    raise NoMechanism(_explanation(offer, permitted, obstacles))


def _obstacle(name: str, credentials: SaslCredentials, channel: Channel, *, named: bool) -> str | None:
    """Why a mechanism that the server offers cannot be used; None if it can."""
    if name in _READABLE and not channel.private and not named:
        secret = "password" if name == "PLAIN" else "token"
        return f"the {secret} could be read: use TLS (amqps://), or permit it by name (--sasl-mechanism {name})"
    match name:
        case "GSSAPI":
            return "it is used only if it is named (--sasl-mechanism GSSAPI)"
        case "OAUTHBEARER":
            return None if credentials.token is not None else "a token is needed"
        case "EXTERNAL":
            return None if named else "a certificate of the client is needed (--cert FILE)"
        case "ANONYMOUS":
            return None if named or credentials.anonymous else "a user does not become anonymous"
        case "PLAIN":
            return None if credentials.username is not None else _NO_USER
    return _scram_obstacle(name, credentials, channel)


def _scram_obstacle(name: str, credentials: SaslCredentials, channel: Channel) -> str | None:
    if credentials.username is None:
        return _NO_USER
    if name.endswith(PLUS) and channel.server_certificate is None:
        return "TLS is needed"
    return None if scram_is_installed() else f"the library scramp is missing: {install_hint('sasl')}"


def _make(name: str, credentials: SaslCredentials, channel: Channel) -> ClientMechanism:
    username, password = credentials.username or "", credentials.password or ""
    match name:
        case "OAUTHBEARER":
            return OauthBearerClient(credentials.token or "", username, credentials.host)
        case "EXTERNAL":
            return ExternalClient(username)
        case "ANONYMOUS":
            return AnonymousClient()
        case "PLAIN":
            return PlainClient(username, password)
    return ScramClient(name, username, password, channel)


def _explanation(offer: Sequence[str], permitted: Sequence[str] | None, obstacles: Mapping[str, Sequence[str]]) -> str:
    text = f"the broker offers SASL {', '.join(offer) or 'no mechanism'}"
    if permitted is not None:
        text += f", and only {', '.join(permitted) or 'none'} may be used"
    reasons = [
        reason if len(obstacles) == 1 else f"{reason} ({', '.join(names)})" for reason, names in obstacles.items()
    ]
    return f"{text}: {'; '.join(reasons)}" if reasons else text
