"""Reasons why a connection failed, in sentences for operators."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl

from qmf.bus.url import BusUrl


def failure_reason(error: BaseException, url: BusUrl) -> str:
    """The reason behind an exception of the network, in one line without a URL."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the broker's TLS certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        reason = (error.reason or str(error)).replace("_", " ").lower()
        hint = " (does the broker use TLS on this port?)" if re.search("wrong version|record layer", reason) else ""
        return f"TLS handshake failed: {reason}{hint}"
    if isinstance(error, socket.gaierror):
        return f"unknown host {url.host!r}: {(error.strerror or str(error)).lower()}"
    if isinstance(error, UnicodeError):
        return f"{url.host!r} is not a host name"
    if isinstance(error, OSError):
        return _system_reason(error)
    return str(error) or type(error).__name__


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
