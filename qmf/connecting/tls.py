"""The files of TLS: which authority is trusted, and which certificate the client shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from qmf.errors import CallerError

if TYPE_CHECKING:
    import ssl


class TlsError(CallerError):
    """A file of TLS cannot be used; the message names the file, the reason and what to do."""


@attrs.frozen(kw_only=True)
class TlsFiles:
    """What a client needs for TLS beyond the system's authorities.

    Attributes:
        ca: certificates of the trusted authorities, in PEM, instead of the system's.
        cert: the client's certificate with its chain, in PEM.
        key: its private key, in PEM; None when `cert` holds it.
        insecure: accept any certificate of any host. The connection is encrypted then, but with whom is unknown.
    """

    ca: Path | None = None
    cert: Path | None = None
    key: Path | None = None
    insecure: bool = False

    @property
    def given(self) -> tuple[str, ...]:
        """The options that are set, as on a command line."""
        return tuple(f"--{name}" for name in ("ca", "cert", "key", "insecure") if getattr(self, name))

    def override(self, by: TlsFiles) -> TlsFiles:
        """These files, but those that `by` has instead."""
        # A key belongs to its certificate: ours does not fit another certificate.
        cert, key = (by.cert, by.key) if by.cert else (self.cert, by.key or self.key)
        return TlsFiles(ca=by.ca or self.ca, cert=cert, key=key, insecure=by.insecure or self.insecure)

    def context(self) -> ssl.SSLContext:
        """A context of a client.

        Raises:
            TlsError: a file cannot be read, is not what it should be, or the key belongs to another certificate.
        """
        # Imported here: most commands connect without TLS.
        import ssl

        if self.key is not None and self.cert is None:
            raise TlsError("--key needs --cert: the certificate that the key belongs to")
        # With a CA file only that authority is trusted, not the system's.
        context = ssl.create_default_context() if self.ca is None else _trusting(self.ca)
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        if self.cert is not None:
            load_own_certificate(context, self.cert, self.key)
        return context


def load_own_certificate(
    context: ssl.SSLContext, cert: Path, key: Path | None, key_password: Path | None = None
) -> None:
    """Load a certificate and its private key, of a client or a server, into `context`.

    Args:
        context: into which it is loaded.
        cert, key: files in PEM; None for a key in the file of the certificate.
        key_password: file whose first line is the password of the key; None for a key that is not encrypted.

    Raises:
        TlsError: a file cannot be read or used.
    """
    import ssl

    _check_readable("certificate", cert)
    if key is not None:
        _check_readable("private key", key)

    def password() -> str:
        # Without this function OpenSSL would ask on the terminal.
        if key_password is None:
            raise _EncryptedKeyError
        _check_readable("password file", key_password)
        return key_password.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")

    try:
        context.load_cert_chain(cert, key, password=password)
    except _EncryptedKeyError:
        raise TlsError(
            f"the private key in {key or cert} is encrypted: decrypt it (openssl pkey -in FILE -out PLAIN)"
        ) from None
    except ssl.SSLError as error:
        if key_password is not None and b"ENCRYPTED" in (key or cert).read_bytes():
            raise TlsError(f"the password in {key_password} is not that of the private key in {key or cert}") from error
        raise TlsError(_certificate_problem(error, cert, key)) from error


def _check_readable(what: str, path: Path) -> None:
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        raise TlsError(f"cannot read the {what} {path}: {(error.strerror or str(error)).lower()}") from error


def _trusting(ca: Path) -> ssl.SSLContext:
    import ssl

    _check_readable("CA file", ca)
    try:
        return ssl.create_default_context(cafile=str(ca))
    except ssl.SSLError as error:
        raise TlsError(f"the CA file {ca} has no certificate in PEM (a block BEGIN CERTIFICATE)") from error


def _certificate_problem(error: ssl.SSLError, cert: Path, key: Path | None) -> str:
    reason = (error.reason or str(error)).replace("_", " ").lower()
    if "values mismatch" in reason:
        return f"the private key in {key or cert} does not belong to the certificate {cert}"
    if b"BEGIN CERTIFICATE" not in cert.read_bytes():
        return f"{cert} has no certificate in PEM (a block BEGIN CERTIFICATE)"
    if key is None and b"PRIVATE KEY" not in cert.read_bytes():
        return f"the certificate {cert} has no private key in its file: name the file of the key as well"
    if key is not None and b"PRIVATE KEY" not in key.read_bytes():
        return f"{key} has no private key in PEM (a block BEGIN PRIVATE KEY)"
    return f"the certificate {cert} cannot be used: {reason}"


#: The system's authorities, and no certificate of our own.
NO_FILES = TlsFiles()


class _EncryptedKeyError(Exception):
    """OpenSSL wants a passphrase."""
