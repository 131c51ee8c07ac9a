"""Bus URLs: where a broker is, and who logs in.

Rule: a password is parsed, kept and passed to SASL; it never appears in `str`, `repr` or an error.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

import attrs

from qmf.errors import CallerError

#: Registered ports of AMQP without and with TLS.
AMQP_PORT = 5672
AMQPS_PORT = 5671

#: Ports of HTTP, which WebSocket begins with.
_HTTP_PORT, _HTTPS_PORT = 80, 443

#: Port where none is written, and whether there is TLS.
_SCHEMES = {
    "amqp": (AMQP_PORT, False),
    "amqps": (AMQPS_PORT, True),
    "ws": (_HTTP_PORT, False),
    "wss": (_HTTPS_PORT, True),
}


class UrlError(CallerError, ValueError):
    """A text is not a valid bus URL.

    Attributes:
        text: as given, with ``***`` in place of the password.
        reason: what is invalid.
    """

    def __init__(self, text: str, reason: str) -> None:
        self.text = hide_password(text)
        self.reason = reason
        super().__init__(self.text, reason)

    def __str__(self) -> str:
        return f"{self.text!r} is not a bus URL: {self.reason}; write amqp://host:port"


@attrs.frozen
class BusUrl:
    """Address of a broker, and the user to log in as.

    Attributes:
        host: name or address; IPv6 without brackets.
        port: TCP port.
        tls: True for ``amqps`` and ``wss``.
        username, password: to log in with; None when the URL has none.
        path: of ``ws`` and ``wss``, which stand for AMQP over WebSocket; None for AMQP alone.
    """

    host: str
    port: int = AMQP_PORT
    tls: bool = False
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    path: str | None = None

    def __str__(self) -> str:
        if self.path is None:
            scheme, path = "amqps" if self.tls else "amqp", ""
        else:
            scheme, path = "wss" if self.tls else "ws", self.path.removesuffix("/")
        user = f"{self.username}@" if self.username else ""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{user}{host}:{self.port}{path}"


def parse_url(text: str, *, any_port: bool = False) -> BusUrl:
    """Read a bus URL.

    Args:
        text: ``host``, ``host:port``, or a URL of the scheme ``amqp``, ``amqps``, ``ws`` or ``wss``, each with
            ``user@``, ``user:password@`` or, but for ``ws`` and ``wss``, the older ``user/password@`` before the host.
            IPv6 addresses are written in brackets. In a URL with a scheme, reserved characters of user and password are
            written as ``%40`` and the like.
        any_port: also take numbers that are no ports. Connecting to these fails.

    Raises:
        UrlError: for anything else; has the text without its password.
    """
    scheme, rest = _scheme(text)
    path = None
    if scheme in ("ws", "wss"):
        rest, slash, path = rest.partition("/")
        path = _path(text, slash + path)
    credentials, at, where = rest.rpartition("@")
    username, password = _credentials(text, credentials, escaped="://" in text) if at else (None, None)
    default, tls = _SCHEMES[scheme]
    host, port = _host_and_port(text, where.removesuffix("/"), default, any_port=any_port)
    return BusUrl(host, port, tls, username, password, path)


def hide_password(text: str) -> str:
    """A text that should be a bus URL, with ``***`` in place of its password."""
    scheme, separator, rest = text.rpartition("://") if "://" in text.partition("@")[0] else ("", "", text)
    credentials, at, where = rest.rpartition("@")
    user = re.split("[:/]", credentials)[0]
    return f"{scheme}{separator}{user}{':***' if user != credentials else ''}{at}{where}"


def _scheme(text: str) -> tuple[str, str]:
    scheme, separator, rest = text.strip().partition("://")
    if not separator:
        return "amqp", scheme
    if scheme.lower() not in _SCHEMES:
        raise UrlError(text, f"unknown scheme {scheme!r}")
    return scheme.lower(), rest


def _credentials(text: str, credentials: str, *, escaped: bool) -> tuple[str, str | None]:
    match = re.match(r"([^:/]+)(?:[:/](.*))?\Z", credentials, re.DOTALL)
    if match is None:
        raise UrlError(text, "the user before '@' is empty")
    username, password = match.groups()
    if escaped:
        return unquote(username), None if password is None else unquote(password)
    return username, password


def _path(text: str, path: str) -> str:
    if bad := re.search(r"[^!-~]|#", path):
        raise UrlError(text, f"{bad[0]!r} cannot be part of a path")
    return path or "/"


def _host_and_port(text: str, where: str, default: int, *, any_port: bool) -> tuple[str, int]:
    if where.count(":") > 1 and "[" not in where:
        raise UrlError(text, "an IPv6 address must be in brackets")
    match = re.match(r"(?:\[([^\[\]]*)\]|([^:\[\]]*))(?::(.*))?\Z", where)
    if match is None:
        raise UrlError(text, "brackets do not match")
    host = match[1] if match[1] is not None else match[2]
    if not host:
        raise UrlError(text, "the host is missing")
    if match[1] is not None and ":" not in host:
        raise UrlError(text, f"{host!r} is not an IPv6 address")
    if bad := re.search(r"[\s/?#@%]", host):
        raise UrlError(text, f"{bad[0]!r} cannot be part of a host")
    if match[3] is None:
        return host, default
    if not re.fullmatch(r"[0-9]{1,9}", match[3]) or not (any_port or 0 < int(match[3]) < 65536):
        raise UrlError(text, f"port {match[3]!r} is not a number from 1 to 65535")
    return host, int(match[3])
