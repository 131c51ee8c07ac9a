"""What a server offers its clients, and who they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from qmf.sasl.anonymous import AnonymousServer
from qmf.sasl.channel import Channel
from qmf.sasl.external import ExternalServer
from qmf.sasl.gssapi import GSSAPI, KerberosService
from qmf.sasl.mechanism import ServerMechanism
from qmf.sasl.oauthbearer import OauthBearerServer
from qmf.sasl.plain import PlainServer
from qmf.sasl.results import Authenticated, Rejected, Result
from qmf.sasl.scram import PLUS, SCRAM_NAMES, ScramKeys, ScramServer, scram_is_installed

#: All mechanisms of servers, the strongest first.
SERVER_MECHANISMS = (
    "EXTERNAL",
    GSSAPI,
    "OAUTHBEARER",
    *(name + PLUS for name in SCRAM_NAMES),
    *SCRAM_NAMES,
    "PLAIN",
    "ANONYMOUS",
)
#: How the texts of JSON Web Tokens begin (RFC 7519): with an object in base64.
_TOKEN_PREFIX = "eyJ"


class Passwords(Protocol):
    """Users who log in by passwords."""

    def check_password(self, user: str, password: str) -> Result:
        """Whether a user has this password."""

    def has_scram_keys(self, mechanism: str) -> bool:
        """Whether all users can use a SCRAM mechanism: clients take the strongest one that is offered."""

    def scram_keys(self, name: str, mechanism: str) -> ScramKeys:
        """Keys of a user; of an unknown one, keys that no password has, the same each time."""


class Tokens(Protocol):
    """Whoever vouches for users by access tokens."""

    def check_token(self, user: str, token: str) -> Result:
        """Whose token it is; `user` is whom the client wants to be, or empty."""


class Authenticator:
    """Decides who the clients of a server are.

    Without passwords, tokens, certificates and a service of Kerberos, everybody is let in.
    """

    def __init__(
        self,
        passwords: Passwords | None = None,
        tokens: Tokens | None = None,
        *,
        certificates: bool = False,
        kerberos: KerberosService | None = None,
        mechanisms: Sequence[str] | None = None,
    ) -> None:
        """Decide by passwords, tokens, certificates and tickets.

        Args:
            passwords: users; None for none.
            tokens: who vouches for users; None for nobody.
            certificates: clients may log in by a certificate that the listener has verified.
            kerberos: to which clients may log in by tickets; None for none.
            mechanisms: names of those that may be used; None for all that are possible. PLAIN and OAUTHBEARER are used
                on a connection that others can read only if they are named.
        """
        self._passwords = passwords
        self._tokens = tokens
        self._certificates = certificates
        self._kerberos = kerberos
        self._permitted = None if mechanisms is None else {name.upper() for name in mechanisms}
        self.open = passwords is None and tokens is None and not certificates and kerberos is None
        self._scram = tuple(
            name
            for name in SCRAM_NAMES
            if passwords is not None and scram_is_installed() and passwords.has_scram_keys(name)
        )

    @property
    def needs_login(self) -> bool:
        """Whether a client that doesn't use SASL at all is refused."""
        return not self.open or (self._permitted is not None and "ANONYMOUS" not in self._permitted)

    def offer(self, channel: Channel) -> tuple[str, ...]:
        """The mechanisms for a client, the strongest first."""
        return tuple(name for name in SERVER_MECHANISMS if self._offers(name, channel))

    def _offers(self, name: str, channel: Channel) -> bool:
        permitted = self._permitted
        if permitted is not None and name not in permitted:
            return False
        readable_is_permitted = channel.private or permitted is not None
        match name:
            case "ANONYMOUS":
                return self.open
            case "PLAIN":
                return self.open or (
                    (self._passwords is not None or self._tokens is not None) and readable_is_permitted
                )
            case "OAUTHBEARER":
                return self._tokens is not None and readable_is_permitted
            case "GSSAPI":
                return self._kerberos is not None
            case "EXTERNAL":
                return self._certificates and bool(channel.client_name)
        return name.removesuffix(PLUS) in self._scram and (
            not name.endswith(PLUS) or channel.server_certificate is not None
        )

    def start(self, name: str, channel: Channel) -> ServerMechanism | None:
        """Begin an exchange; None for a mechanism that is not offered."""
        if not self._offers(name, channel):
            return None
        match name:
            case "ANONYMOUS":
                return AnonymousServer()
            case "PLAIN":
                return PlainServer(self._check_plain)
            case "GSSAPI":
                assert self._kerberos is not None
                return self._kerberos.start()
            case "EXTERNAL":
                return ExternalServer(channel.client_name)
            case "OAUTHBEARER":
                assert self._tokens is not None
                return OauthBearerServer(self._tokens.check_token)
        passwords = self._passwords
        assert passwords is not None
        base = name.removesuffix(PLUS)
        return ScramServer(name, lambda user: passwords.scram_keys(user, base), channel)

    def _check_plain(self, user: str, password: str) -> Result:
        if self.open:
            return Authenticated(user)
        if self._tokens is not None and password.startswith(_TOKEN_PREFIX) and password.count(".") == 2:
            return self._tokens.check_token(user, password)
        if self._passwords is None:
            return Rejected("unknown user or wrong password")
        return self._passwords.check_password(user, password)
