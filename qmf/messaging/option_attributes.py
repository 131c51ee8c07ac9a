"""The options of a connection as its attributes, by their published names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Self, TypeVar, overload

from qmf.bus.client.network_connection import Dial
from qmf.messaging.core.connection_core import ConnectionCore
from qmf.messaging.endpoint import Endpoint
from qmf.messaging.exceptions import ConnectionError
from qmf.messaging.options import read_options

ValueT = TypeVar("ValueT")


class OptionAttribute(Generic[ValueT]):
    """An option that can be read and set; None stands for its default.

    A connection that is open lets those of reconnecting be set, which the next attempt uses.
    """

    def __init__(self, default: ValueT, *others: str) -> None:
        """Describe an option.

        Args:
            default: its value where it was not given.
            others: options that stand for this one where it was not given.
        """
        self._default = default
        self._others = others
        self._name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, connection: None, owner: type) -> Self: ...

    @overload
    def __get__(self, connection: OptionAttributes, owner: type) -> ValueT: ...

    def __get__(self, connection: OptionAttributes | None, owner: type) -> ValueT | Self:
        if connection is None:
            return self
        for name in (self._name, *self._others):
            if (value := connection._given.get(name)) is not None:
                found: ValueT = value
                return found
        return self._default

    def __set__(self, connection: OptionAttributes, value: ValueT | None) -> None:
        """Change the option of a connection.

        Raises:
            ConnectionError: the value has a wrong type, or the option cannot be changed while the connection is open.
        """
        connection._set(self._name, value)


class OptionAttributes(Endpoint[ConnectionCore]):
    """Base of connections: what `Connection(url, **options)` was given, and the defaults.

    Source: published Python API, `Connection.__init__`.
    """

    __slots__ = ("_given", "_url")

    def __init__(self, url: object, options: Mapping[str, Any], dial: Dial | None) -> None:
        """Take the URL and the options of a connection.

        Args:
            url, options: see `qmf.messaging.aio.Connection`.
            dial: as of `ConnectionCore`.
        """
        super().__init__(ConnectionCore(read_options(url, options), dial))
        self._url = url
        self._given = {name.replace("-", "_"): value for name, value in options.items()}

    reconnect = OptionAttribute[bool](default=False)
    reconnect_timeout = OptionAttribute[float | None](None)
    reconnect_limit = OptionAttribute[int | None](None)
    reconnect_interval = OptionAttribute[float | None](None)
    reconnect_interval_min = OptionAttribute[float](1, "reconnect_interval")
    reconnect_interval_max = OptionAttribute[float](120, "reconnect_interval")
    reconnect_urls = OptionAttribute[Any](())
    reconnect_log = OptionAttribute[bool](default=True)
    heartbeat = OptionAttribute[float | None](None)
    protocol = OptionAttribute[str | None](None)
    sasl_mechanisms = OptionAttribute[str | None](None)
    sasl_service = OptionAttribute[str](default="qpidd")
    sasl_min_ssf = OptionAttribute[int | None](None)
    sasl_max_ssf = OptionAttribute[int | None](None)
    address_ttl = OptionAttribute[float](60)
    tcp_nodelay = OptionAttribute[bool](default=False)
    ssl_keyfile = OptionAttribute[str | None](None)
    ssl_certfile = OptionAttribute[str | None](None)
    ssl_trustfile = OptionAttribute[str | None](None)
    ssl_skip_hostname_check = OptionAttribute[bool](default=False)
    client_properties = OptionAttribute[Mapping[str, Any]]({})

    @property
    def host(self) -> str:
        """Of the first URL."""
        return self._core.options.urls[0].host

    @property
    def port(self) -> int:
        """Of the first URL."""
        return self._core.options.urls[0].port

    @property
    def transport(self) -> str:
        """``ssl``, or ``tcp`` for a connection without TLS."""
        return "ssl" if self._core.options.urls[0].tls else "tcp"

    @property
    def username(self) -> str | None:
        """Of the first URL, or of the option; None for an anonymous user."""
        return self._core.options.urls[0].username or self._core.options.username

    @username.setter
    def username(self, value: str | None) -> None:
        self._set("username", value)

    @property
    def password(self) -> str | None:
        """Of the first URL, or of the option."""
        return self._core.options.urls[0].password or self._core.options.password

    @password.setter
    def password(self, value: str | None) -> None:
        self._set("password", value)

    def _set(self, name: str, value: object) -> None:
        given = {**self._given, name: value}
        options = read_options(self._url, given)
        if not self._core.opened:
            self._core.change(options)
        elif name.startswith("reconnect"):
            self._core.change_reconnecting(options)
        else:
            raise ConnectionError(text=f"option {name}: cannot be changed while the connection is open")
        self._given = given
