"""What a domain logs in with besides a password, in files of this machine: certificates for TLS, and an access token.

They are read whenever a link connects, so that a file may be replaced by a newer one.
"""

from __future__ import annotations

import ssl
from pathlib import Path

import attrs

from qmf.broker.nodes.arguments import Arguments
from qmf.errors import CallerError

TRUSTED, CERTIFICATE, KEY, TOKEN = "ssl_trustfile", "ssl_certfile", "ssl_keyfile", "token_file"


class CredentialsUnusable(CallerError):
    """A file cannot be used; names the property, the file and the reason."""


@attrs.frozen
class PeerCredentials:
    """The files of a domain, or of a link for routes; None for those that are not given.

    Attributes:
        trusted: certificates of the authorities that are trusted, in PEM, instead of those of the system.
        certificate: this broker's certificate with its chain, in PEM.
        key: its private key; None when `certificate` holds it.
        token: an access token.
    """

    trusted: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    token: Path | None = None

    def context(self) -> ssl.SSLContext:
        """What links connect with by TLS.

        Raises:
            CredentialsUnusable: a file cannot be used.
        """
        if self.key is not None and self.certificate is None:
            raise CredentialsUnusable(f"{KEY}: the certificate is missing ({CERTIFICATE})")
        try:
            context = ssl.create_default_context(cafile=self.trusted)
        except (ssl.SSLError, OSError) as error:
            raise _unusable(TRUSTED, self.trusted, error) from error
        if self.certificate is not None:
            try:
                # Without a password: a key that is encrypted is refused, instead of asking the terminal for one.
                context.load_cert_chain(self.certificate, self.key, password=lambda: b"")
            except (ssl.SSLError, OSError) as error:
                raise _unusable(CERTIFICATE, self.certificate, error) from error
        return context

    def read_token(self) -> str:
        """The access token as it is now.

        Raises:
            CredentialsUnusable: it cannot be read.
        """
        assert self.token is not None
        try:
            text = self.token.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise _unusable(TOKEN, self.token, error) from error
        if not text:
            raise CredentialsUnusable(f"{TOKEN}: {str(self.token)!r} is empty")
        return text

    def check(self) -> None:
        """See whether all files can be used.

        Raises:
            CredentialsUnusable: one cannot.
        """
        if self.trusted is not None or self.certificate is not None or self.key is not None:
            self.context()
        if self.token is not None:
            self.read_token()


def read_credentials(arguments: Arguments) -> PeerCredentials:
    """The files that properties name.

    Raises:
        NodeArgumentError: a property is no text.
    """
    paths = [Path(text) if (text := arguments.text(name)) else None for name in (TRUSTED, CERTIFICATE, KEY, TOKEN)]
    return PeerCredentials(*paths)


def _unusable(name: str, path: Path | None, error: Exception) -> CredentialsUnusable:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return CredentialsUnusable(f"{name}: {str(path)!r} cannot be used: {reason}")
