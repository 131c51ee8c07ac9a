"""What programs import from `qpid.util`: the class of a broker's URL."""

from __future__ import annotations

import re

_FORM = re.compile(
    r"(?:(?P<scheme>[^:/@]+)://)?(?:(?P<user>[^:/@]+)(?:/(?P<password>[^:/@]+))?@)?"
    r"(?:(?P<host>[^@:/\[]+)|\[(?P<address>[a-fA-F0-9:.]+)\])(?::(?P<port>[0-9]+))?\Z"
)


class URL:
    """A broker's URL, taken apart: ``[scheme://][user[/password]@]host[:port]``. `Connection` takes it.

    Attributes:
        scheme, user, password, host: text; None for what is missing, but for the host.
        port: a number, or None.

    Source: published Python API, `qpid.util.URL`.
    """

    AMQPS = "amqps"
    AMQP = "amqp"

    def __init__(
        self,
        s: str | URL | None = None,
        *,
        scheme: str | None = None,
        user: str | None = None,
        password: str | None = None,
        host: str | None = None,
        port: int | None = None,
    ) -> None:
        """Take a URL apart, or put one together from its parts.

        Args:
            s: the URL; None to give its parts.
            scheme, user, password, host, port: the parts.

        Raises:
            ValueError: the text is not a URL, or the host is missing.
        """
        if s is not None:
            match = _FORM.match(str(s))
            if match is None:
                raise ValueError(f"{str(s)!r} is not [scheme://][user[/password]@]host[:port]")
            scheme, user, password = match["scheme"], match["user"], match["password"]
            host = match["host"] or match["address"]
            port = None if match["port"] is None else int(match["port"])
        if host is None:
            raise ValueError("the host of a URL is missing")
        self.scheme, self.user, self.password, self.host, self.port = scheme, user, password, host, port

    def __str__(self) -> str:
        user = "" if self.user is None else self.user + ("" if self.password is None else f"/{self.password}") + "@"
        host = f"[{self.host}]" if ":" in self.host else self.host
        scheme = "" if self.scheme is None else f"{self.scheme}://"
        return f"{scheme}{user}{host}" + ("" if self.port is None else f":{self.port}")

    def __repr__(self) -> str:
        """The URL without its password."""
        shown = URL(scheme=self.scheme, user=self.user, host=self.host, port=self.port)
        return f"URL({str(shown)!r})"

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, URL | str) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))
