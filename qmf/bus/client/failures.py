"""Why a connection failed: what it was, and the reason in a sentence for operators."""

from __future__ import annotations

import enum
import errno
import os
import re
import socket
import ssl

from qmf.bus.url import BusUrl


class FailureKind(enum.Enum):
    """What failed."""

    UNREACHABLE = "unreachable"  #: no connection was made
    AUTHENTICATION = "authentication"
    PROTOCOL = "protocol"  #: the peer does not use AMQP 1.0
    CLOSED = "closed"  #: by the broker, or since the peer has violated the protocol
    SILENCE = "silence"  #: no heartbeat of the broker
    LOST = "lost"  #: the transport has ended


class NetworkFailure(Exception):
    """A network connection could not be made, or has ended. What is built on it raises errors of its own API.

    Attributes:
        url: of the broker.
        what: failed, in one line without the URL.
        kind: see there.
        condition, description: of the error as AMQP has it, or empty.
    """

    def __init__(
        self,
        url: BusUrl,
        what: str,
        kind: FailureKind = FailureKind.UNREACHABLE,
        condition: str = "",
        description: str = "",
    ) -> None:
        self.url = url
        self.what = what
        self.kind = kind
        self.condition = condition
        self.description = description
        super().__init__(url, what, kind, condition, description)

    @property
    def reason(self) -> str:
        """What failed, with the error of AMQP, in one line without the URL."""
        error = ": ".join(text for text in (self.condition, self.description) if text)
        return f"{self.what} ({error})" if error else self.what

    def __str__(self) -> str:
        return f"{self.url}: {self.reason}"


#: What an authority does about a certificate that Python accepts up to 3.12.
_STRICT = "Python 3.13 and later require it; issue the certificate again with it (docs/brokers.md)"

#: What to do when the broker's certificate is not accepted, by OpenSSL's number of the reason (X509_V_ERR_...).
_VERIFICATION: dict[int, str] = {
    9: "it is not valid yet: compare the clocks of both machines",
    10: "it has expired: renew it at the broker, if the clock of this machine is right",
    18: "it is self-signed: if it is the right one, name its file as CA (--ca FILE)",
    19: "its authority is not trusted here: name the file with the authority's certificate (--ca FILE)",
    20: "its authority is not trusted here: name the file with the authority's certificate (--ca FILE)",
    21: "its authority is not trusted here: name the file with the authority's certificate (--ca FILE)",
    62: "it is for another host name than {host}: connect by the name that it has",
    64: "it is not for the address {host}: connect by the name that it has",
    # Extensions that Python verifies from 3.13 on (VERIFY_X509_STRICT).
    85: "it has no authority key identifier: " + _STRICT,
    86: "its authority's certificate has no subject key identifier: " + _STRICT,
    92: "its authority's certificate has no key usage: " + _STRICT,
}

#: What a TLS alert of the broker means, by part of OpenSSL's name of it.
_ALERTS: dict[str, str] = {
    "certificate required": "it requires a certificate of the client (--cert FILE, --key FILE)",
    "handshake failure": "no common cipher, or it requires a certificate of the client (--cert FILE, --key FILE)",
    "unknown ca": "it does not trust the authority of the client's certificate",
    "certificate expired": "the client's certificate has expired",
    "bad certificate": "it does not accept the client's certificate",
    "certificate unknown": "it does not accept the client's certificate",
    "protocol version": "it offers no version of TLS that is considered safe here",
}

_NO_TLS = (
    "the broker does not seem to use TLS on this port: use its port for TLS, or amqp:// for a connection without TLS"
)


def failure_reason(error: BaseException, url: BusUrl) -> str:
    """The reason behind an exception of the network, in one line without a URL, with what to do where that is known."""
    if isinstance(error, ssl.SSLCertVerificationError):
        advice = _VERIFICATION.get(error.verify_code, error.verify_message).format(host=repr(url.host))
        return f"the broker's TLS certificate is not accepted: {advice}"
    if isinstance(error, ssl.SSLError):
        return _tls_reason(error)
    if isinstance(error, socket.gaierror):
        return f"unknown host {url.host!r}: {(error.strerror or str(error)).lower()}"
    if isinstance(error, UnicodeError):
        return f"{url.host!r} is not a host name"
    if isinstance(error, OSError):
        return _system_reason(error)
    return str(error) or type(error).__name__


def handshake_reason(error: BaseException, url: BusUrl) -> str:
    """The reason why no transport was made: as `failure_reason`, where a broken connection broke the TLS handshake."""
    reason = failure_reason(error, url)
    if url.tls and isinstance(error, ConnectionResetError | ConnectionAbortedError | BrokenPipeError | ssl.SSLEOFError):
        return f"{reason} during the TLS handshake; {_NO_TLS}"
    return reason


def unopened_reason(error: Exception | None, url: BusUrl) -> str:
    """The reason why a transport ended before the peer opened an AMQP connection; `error` is None for a plain end."""
    if isinstance(error, ssl.SSLError):
        return failure_reason(error, url)
    reason = "the broker closed the connection" if error is None else failure_reason(error, url)
    if url.tls:
        return f"{reason}; it may require a certificate of the client (--cert FILE, --key FILE)"
    return f"{reason}; it may require TLS (amqps://)"


def framing_reason(description: str, url: BusUrl) -> str:
    """The reason why the first bytes of the peer are not AMQP 1.0, as proton describes them."""
    if not url.tls and _TLS_ALERT in description:
        return "this port is for TLS: use amqps://, or the port without TLS"
    return f"the peer does not use AMQP 1.0: {description}"


#: The beginning of a TLS alert, as proton shows bytes.
_TLS_ALERT = r"['\x15\x03"


def _tls_reason(error: ssl.SSLError) -> str:
    name = (error.reason or str(error)).replace("_", " ").lower()
    if re.search("wrong version|record layer|unexpected eof|eof occurred|http request", name):
        return f"TLS handshake failed: {_NO_TLS}"
    if "alert" in name:
        advice = next((text for part, text in _ALERTS.items() if part in name), name.partition("alert ")[2])
        return f"the broker refused the TLS handshake: {advice}"
    return f"TLS failed: {name}"


#: Errors that asyncio raises without an error number when a transport ends unexpectedly.
_WITHOUT_NUMBER: dict[type[OSError], str] = {
    ConnectionResetError: "the broker closed the connection",
    ConnectionAbortedError: "the connection was aborted",
    BrokenPipeError: "the broker closed the connection",
}


def _system_reason(error: OSError) -> str:
    numbers = {error.errno} if error.errno else {int(number) for number in re.findall(r"\[Errno (\d+)\]", str(error))}
    reasons = sorted({os.strerror(number).lower() for number in numbers if number})
    if numbers == {errno.ECONNREFUSED}:
        return "connection refused: nothing listens there"
    return "; ".join(reasons) or str(error) or _WITHOUT_NUMBER.get(type(error), type(error).__name__)
