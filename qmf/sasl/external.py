"""EXTERNAL (RFC 4422, appendix A): the certificate of the client's TLS says who it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmf.sasl.mechanism import OneMessageClient
from qmf.sasl.results import Authenticated, Rejected, Result


class ExternalClient(OneMessageClient):
    """A client with a certificate."""

    name = "EXTERNAL"

    def __init__(self, username: str = "") -> None:
        """Make the client of one exchange.

        Args:
            username: whom it wants to act for; empty for whom the certificate names.
        """
        super().__init__(username.encode())


class ExternalServer:
    """A server that has verified the client's certificate.

    Attributes:
        claimed_user: see `ServerMechanism`.
    """

    def __init__(self, name: str) -> None:
        """Make the server of one exchange.

        Args:
            name: that the certificate has, by `certificate_user`.
        """
        self.claimed_user = name

    def respond(self, response: bytes | None) -> Result:
        """See `ServerMechanism`."""
        if response and response != self.claimed_user.encode():
            return Rejected(f"its certificate does not name user {response.decode(errors='replace')!r}")
        return Authenticated(self.claimed_user)


def certificate_user(certificate: Mapping[str, object] | None) -> str:
    """The user whom a certificate names, as qpidd finds it: the common name, and the domain components behind ``@``.

    Args:
        certificate: as `ssl.SSLSocket.getpeercert` returns it; None without one.

    Returns:
        such as ``bob@example.com``; empty if the certificate has no common name.
    """
    subject = (certificate or {}).get("subject")
    names: dict[str, list[str]] = {}
    if isinstance(subject, Sequence):
        for attribute in subject:
            for key, value in attribute:
                names.setdefault(key, []).append(value)
    common, domain = names.get("commonName", []), names.get("domainComponent", [])
    if not common:
        return ""
    # Subjects begin with the outermost part, names of domains end with it.
    return "@".join(filter(None, (common[-1], ".".join(reversed(domain)))))
