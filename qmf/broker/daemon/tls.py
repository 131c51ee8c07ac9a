"""TLS of a broker: its certificate, which clients have to show one, and reading the files again while it runs."""

from __future__ import annotations

import datetime
import logging
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from qmf.broker.accepting import accepted_socket
from qmf.broker.certificates import CertificateFacts
from qmf.connecting.tls import TlsError, load_own_certificate

log = logging.getLogger("qmf.broker")

#: Days before its end from which a certificate is warned of.
EXPIRY_WARNING_DAYS = 30

_VERSIONS = {"1.2": ssl.TLSVersion.TLSv1_2, "1.3": ssl.TLSVersion.TLSv1_3}
#: What `TlsOptions.minimum_version` may be.
TLS_VERSIONS = tuple(_VERSIONS)
#: What clients may ask for by ALPN (RFC 7301).
_ALPN = ["amqp"]


@attrs.frozen(kw_only=True)
class TlsOptions:
    """What a broker's TLS is made of.

    Attributes:
        cert: certificate with its chain, in PEM.
        key: its private key, in PEM; None when `cert` holds it.
        key_password: file whose first line is the password of the key; None for a key that is not encrypted.
        client_ca: certificates of the authorities that clients' certificates must be of, in PEM. None: clients are not
            asked for one.
        crl: certificates that were revoked, in PEM; None for no such list.
        client_certificate_required: clients without a certificate are refused.
        minimum_version: of TLS.
        ciphers: of TLS 1.2, in OpenSSL's notation; None for Python's.
    """

    cert: Path
    key: Path | None = None
    key_password: Path | None = None
    client_ca: Path | None = None
    crl: Path | None = None
    client_certificate_required: bool = False
    minimum_version: str = "1.2"
    ciphers: str | None = None


class BrokerTls:
    """TLS of a broker that runs.

    Attributes:
        context: with which clients are accepted.
        certificate: of the broker, as DER.
    """

    def __init__(self, options: TlsOptions, export: Callable[[], None] = lambda: None) -> None:
        """Read the files.

        Args:
            export: writes them before they are read, from where they come.

        Raises:
            TlsError: a file cannot be read or used, or options contradict each other; also as of `export`.
        """
        self.options = options
        self._export = export
        export()
        self.context = _make_context(options)
        self.certificate = _first_certificate(options.cert)

    def reload(self) -> None:
        """Read the files again; clients that connect from now on get what is in them.

        Authorities and revoked certificates are added to those that are known; to forget one, start the broker again.

        Raises:
            TlsError: a file cannot be read or used; nothing has changed.
        """
        self._export()
        _make_context(self.options)  # a context may be left with a new certificate and an old key
        _load_files(self.context, self.options)
        self.certificate = _first_certificate(self.options.cert)

    def expiry(self) -> datetime.datetime | None:
        """When the certificate ends; None if the library that knows (extra `sasl`) is missing."""
        facts = CertificateFacts.of(self.certificate)
        return None if facts is None else facts.end

    def expiry_warning(self, now: datetime.datetime) -> str | None:
        """What to say about a certificate that ends soon, or has ended; None for nothing."""
        end = self.expiry()
        if end is None or end - now > datetime.timedelta(days=EXPIRY_WARNING_DAYS):
            return None
        verb = "ended" if end <= now else "ends"
        return f"the certificate {self.options.cert} {verb} at {end:%Y-%m-%d %H:%M} UTC; renew it, then send SIGHUP"


class _Handshake(ssl.SSLObject):
    """The broker's end of a connection: why a client's certificate is refused is logged, and the client is told.

    The event loop ends such a connection in silence: what OpenSSL has written for the client, the alert, it drops.
    """

    #: What OpenSSL has written for the client.
    outgoing: ssl.MemoryBIO | None = None

    def do_handshake(self) -> None:
        try:
            super().do_handshake()
        except (ssl.SSLWantReadError, ssl.SSLWantWriteError):
            raise
        except ssl.SSLError as error:
            # `verify_message` is the reason in words, of a certificate that was verified.
            reason = getattr(error, "verify_message", "") or error.reason or str(error)
            log.info("a connection is refused by TLS: %s", reason.replace("_", " ").lower())
            self._send_alert()
            raise

    def _send_alert(self) -> None:
        connected = accepted_socket.get()
        if self.outgoing is None or connected is None:
            return
        try:
            connected.send(self.outgoing.read())  # some bytes, for which the socket has room
        except OSError as error:
            log.debug("the client is not told: %s", error)


class _Context(ssl.SSLContext):
    """Accepts clients, with handshakes as above."""

    sslobject_class = _Handshake

    def wrap_bio(self, incoming: ssl.MemoryBIO, outgoing: ssl.MemoryBIO, *args: Any, **kwargs: Any) -> ssl.SSLObject:
        found = super().wrap_bio(incoming, outgoing, *args, **kwargs)
        assert isinstance(found, _Handshake)
        found.outgoing = outgoing
        return found


def _make_context(options: TlsOptions) -> ssl.SSLContext:
    context = _Context(ssl.PROTOCOL_TLS_SERVER)  # which needs nothing of `create_default_context`
    context.minimum_version = _VERSIONS[options.minimum_version]
    context.set_alpn_protocols(_ALPN)
    if options.ciphers is not None:
        try:
            context.set_ciphers(options.ciphers)
        except ssl.SSLError as error:
            raise TlsError(f"no cipher of OpenSSL is named by {options.ciphers!r}") from error
    if options.client_ca is None:
        for text, value in (
            ("a certificate of each client", options.client_certificate_required),
            ("a list of revoked certificates", options.crl),
        ):
            if value:
                raise TlsError(f"{text} can be checked only with the authorities of clients' certificates")
    else:
        context.verify_mode = ssl.CERT_REQUIRED if options.client_certificate_required else ssl.CERT_OPTIONAL
    if options.crl is not None:
        context.verify_flags |= ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF
    _load_files(context, options)
    return context


def _load_files(context: ssl.SSLContext, options: TlsOptions) -> None:
    load_own_certificate(context, options.cert, options.key, options.key_password)
    for what, path in (("CA file", options.client_ca), ("list of revoked certificates", options.crl)):
        if path is None:
            continue
        try:
            context.load_verify_locations(path)
        except ssl.SSLError as error:
            raise TlsError(f"the {what} {path} has nothing in PEM that can be used") from error
        except OSError as error:
            raise TlsError(f"cannot read the {what} {path}: {(error.strerror or str(error)).lower()}") from error


def _first_certificate(path: Path) -> bytes:
    begin, end = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
    text = path.read_text(encoding="latin-1")
    return ssl.PEM_cert_to_DER_cert(begin + text.partition(begin)[2].partition(end)[0] + end)
