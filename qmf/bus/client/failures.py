"""Why a connection could not be made, in words an operator can use."""

from __future__ import annotations

import errno
import os
import re
import socket
import ssl

from qmf.bus.url import BusUrl


def describe(error: BaseException, url: BusUrl) -> str:
    """The reason behind an exception of the network, in one line."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the broker's TLS certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        words = (error.reason or str(error)).replace("_", " ").lower()
        hint = (
            " (does the broker speak TLS on this port?)" if "wrong version" in words or "record layer" in words else ""
        )
        return f"TLS handshake failed: {words}{hint}"
    if isinstance(error, socket.gaierror):
        return f"unknown host {url.host!r}: {(error.strerror or str(error)).lower()}"
    if isinstance(error, UnicodeError):
        return f"{url.host!r} is not a host name"
    if isinstance(error, OSError):
        return _system(error)
    return str(error) or type(error).__name__


#: asyncio raises these without a number when a transport ends in the middle of something.
_NAMELESS: dict[type[OSError], str] = {
    ConnectionResetError: "the broker closed the connection",
    ConnectionAbortedError: "the connection was aborted",
    BrokenPipeError: "the broker closed the connection",
}


def _system(error: OSError) -> str:
    numbers = {error.errno} if error.errno else {int(number) for number in re.findall(r"\[Errno (\d+)\]", str(error))}
    words = sorted({os.strerror(number).lower() for number in numbers if number})
    if numbers == {errno.ECONNREFUSED}:
        return "connection refused: nothing listens there"
    return "; ".join(words) or str(error) or _NAMELESS.get(type(error), type(error).__name__)
