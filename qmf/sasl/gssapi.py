"""GSSAPI (RFC 4752): Kerberos tickets in place of passwords, by the library gssapi (extra `gssapi`).

Both sides prove who they are. No security layer follows: what has to be kept from readers goes through TLS.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from qmf._extras import install_hint
from qmf.sasl.mechanism import SaslError
from qmf.sasl.results import Authenticated, Challenge, Rejected, Result

GSSAPI = "GSSAPI"
#: Of AMQP's servers: their principals are ``amqp/HOST``.
SERVICE = "amqp"
#: What is said once both know each other: no security layer, and so no bytes of one (RFC 4752, 3.1 and 3.2).
_NO_LAYER = b"\x01\x00\x00\x00"

_Made = TypeVar("_Made")


class GssapiClient:
    """A client with a ticket, from the cache of tickets or the keytab that the environment names."""

    name = GSSAPI

    def __init__(self, host: str, username: str = "", service: str = SERVICE) -> None:
        """Get a ticket for the server. That may ask the key distribution centre, and takes as long as it takes.

        Args:
            host: of the server, as its principal names it.
            username: whom the client wants to act for; empty for the principal of the ticket.
            service: of the server's principal.

        Raises:
            SaslError: there is no ticket, or the library is missing.
        """
        library = _library()
        self._username = username

        def begin() -> tuple[Any, bytes]:
            name = library.Name(f"{service}@{host}", library.NameType.hostbased_service)
            # A server that proves nothing could be anybody, to whom what comes next is sent.
            flags = library.RequirementFlag.mutual_authentication | library.RequirementFlag.integrity
            mechanism = library.MechType.kerberos
            context = library.SecurityContext(name=name, usage="initiate", mech=mechanism, flags=flags)
            return context, context.step() or b""

        self._context, self._first = _call(begin)

    def initial(self) -> bytes | None:
        """See `ClientMechanism`."""
        return self._first

    def respond(self, challenge: bytes) -> bytes:
        """See `ClientMechanism`."""
        context = self._context
        if not _is_complete(context):
            if not challenge:  # of servers that ask before they read the first token
                return self._first
            return _call(lambda: context.step(challenge)) or b""
        offer = _call(lambda: context.unwrap(challenge)).message
        if len(offer) != 4 or not offer[0] & 1:
            raise SaslError(f"{GSSAPI}: the broker insists on a security layer")
        wrapped: bytes = _call(lambda: context.wrap(_NO_LAYER + self._username.encode(), False)).message
        return wrapped

    def finish(self, data: bytes | None) -> None:  # noqa: ARG002  # the server has proved itself before
        """See `ClientMechanism`."""
        if not _is_complete(self._context):
            raise SaslError(f"{GSSAPI}: the broker has not proved who it is")


class KerberosService:
    """A server with a key of its own.

    Attributes:
        keytab: the file with it.
    """

    def __init__(self, keytab: Path, service: str = SERVICE) -> None:
        """Read the key once, to find out now whether that works.

        Args:
            keytab: file with the keys of ``SERVICE/HOST``; it is read for each login.
            service: of the principal.

        Raises:
            SaslError: the file has no usable key, or the library is missing.
        """
        self.keytab = keytab
        self._library = _library()
        self._service = service
        self._credentials()

    def start(self) -> GssapiServer:
        """Begin an exchange."""
        return GssapiServer(lambda: self._library.SecurityContext(creds=self._credentials(), usage="accept"))

    def _credentials(self) -> Any:
        library = self._library

        def read() -> Any:
            # Without a host: whichever the file has a key for.
            name = library.Name(self._service, library.NameType.hostbased_service)
            store = {"keytab": str(self.keytab)}
            return library.Credentials(name=name, usage="accept", mechs=[library.MechType.kerberos], store=store)

        try:
            return _call(read)
        except SaslError as error:
            raise SaslError(f"{self.keytab}: {error}") from error


class GssapiServer:
    """A server that is shown a ticket.

    Attributes:
        claimed_user: see `ServerMechanism`.
    """

    def __init__(self, make_context: Callable[[], Any]) -> None:
        """Make the server of one exchange.

        Args:
            make_context: of the library, for the server's side.
        """
        self.claimed_user = ""
        self._make_context = make_context
        self._context: Any = None
        self._layers_offered = False

    def respond(self, response: bytes | None) -> Result:
        """See `ServerMechanism`."""
        if response is None:
            return Challenge(b"")
        try:
            return self._respond(response)
        except SaslError as error:
            return Rejected(str(error))

    def _respond(self, response: bytes) -> Result:
        context = self._context
        if context is None:
            context = self._context = _call(self._make_context)
        if not _is_complete(context):
            token: bytes = _call(lambda: context.step(response)) or b""
            if _is_complete(context):
                self.claimed_user = _call(lambda: str(context.initiator_name))
            if token or not _is_complete(context):
                return Challenge(token)
        if self._layers_offered:
            return self._finish(response)
        # The client has the last token, and answers it with nothing (RFC 4752, 3.1).
        self._layers_offered = True
        return Challenge(_call(lambda: context.wrap(_NO_LAYER, False)).message)

    def _finish(self, response: bytes) -> Result:
        answer: bytes = _call(lambda: self._context.unwrap(response)).message
        if answer[:4] != _NO_LAYER:
            return Rejected(f"{GSSAPI}: it chose a security layer, which was not offered")
        wanted = answer[4:].decode(errors="replace")
        # With or without its realm: there is none to choose.
        if wanted not in ("", self.claimed_user, self.claimed_user.rpartition("@")[0]):
            return Rejected(f"{GSSAPI}: {self.claimed_user!r} wants to act for {wanted!r}")
        return Authenticated(self.claimed_user)


def _library() -> Any:
    try:
        return importlib.import_module("gssapi")
    except (ImportError, OSError) as error:
        raise SaslError(f"{GSSAPI} needs the library gssapi ({error}): {install_hint('gssapi')}") from None


def _is_complete(context: Any) -> bool:
    """Whether both sides know each other; the library raises the error of the last step here, if there was one."""
    return _call(lambda: bool(context.complete))


def _call(function: Callable[[], _Made]) -> _Made:
    """Call the library.

    Raises:
        SaslError: in place of its errors.
    """
    try:
        return function()
    except _library().exceptions.GSSError as error:
        reason = " ".join(str(error).split())
        raise SaslError(f"{GSSAPI}: {reason}") from error
