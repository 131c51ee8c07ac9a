"""What SASL has to know about the connection below it."""

from __future__ import annotations

import attrs


@attrs.frozen
class Channel:
    """A connection, as one of its ends sees it.

    Attributes:
        encrypted: TLS protects it.
        local: both ends are on this machine, so that nobody else can read what passes.
        server_certificate: of the server, as DER: mechanisms with channel binding (RFC 5929, `tls-server-end-point`)
            prove that both ends see the same one. None without TLS.
        client_name: whom the client's certificate names, on the server's side; empty without a verified certificate.
    """

    encrypted: bool = False
    local: bool = False
    server_certificate: bytes | None = None
    client_name: str = ""

    @property
    def private(self) -> bool:
        """True if nobody else can read a password that is sent as it is."""
        return self.encrypted or self.local
