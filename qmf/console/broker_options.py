"""Broker options: the arguments of `addBroker`, checked, and the bus made from them."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from qmf.bus import AmqpBus, Bus
from qmf.console.identity import BrokerURL
from qmf.errors import CallerError, ConstraintError, NotFoundError

#: Seconds for connecting when `addBroker` does not specify it.
CONNECT_TIME = 10.0

#: Seconds that requests of the session itself, such as those for schemas, wait for an answer.
SESSION_TIME = 60.0

_TLS = ("ssl_certfile", "ssl_keyfile", "ssl_trustfile", "ssl_skip_hostname_check")
_KNOWN = ("username", "password", "heartbeat", "service", *_TLS)


@attrs.frozen(kw_only=True)
class AddBrokerOptions:
    """How to connect to one broker.

    Attributes:
        url: its URL.
        timeout: seconds for connecting.
        session_timeout: seconds that requests of the session itself wait for an answer.
        mechanisms: SASL mechanisms allowed, or None for all that the library supports.
        username, password: for the connection, or None.
        heartbeat: seconds between AMQP heartbeats, or None for the driver's default.
        tls: context for TLS, or None without.
    """

    url: BrokerURL
    timeout: float
    session_timeout: float
    mechanisms: tuple[str, ...] | None
    username: str | None
    password: str | None = attrs.field(repr=False)
    heartbeat: float | None
    tls: ssl.SSLContext | None

    def make_bus(self, *, reconnect: bool) -> Bus:
        """A bus with these options, not connected yet."""
        extra: dict[str, Any] = {} if self.heartbeat is None else {"heartbeat": self.heartbeat}
        return AmqpBus(
            f"{self.url.scheme}://{self.url}",
            username=self.username,
            password=self.password,
            mechanisms=self.mechanisms,
            ssl_context=self.tls,
            reconnect=reconnect,
            **extra,
        )


def read_options(
    target: str | BrokerURL,
    timeout: float | None,
    mechanisms: str | Sequence[str] | None,
    sessTimeout: float | None,
    connectArgs: Mapping[str, Any],
) -> AddBrokerOptions:
    """Check the arguments of `addBroker`.

    Raises:
        UrlError: `target` is not a valid URL.
        NotFoundError: an unknown argument.
        ConstraintError: an invalid value.
        CallerError: an option that AMQP 1.0 doesn't have, or TLS files that can't be read.
    """
    url = target if isinstance(target, BrokerURL) else BrokerURL(target)
    for name in connectArgs:
        if name == "client_properties":
            raise CallerError("addBroker: client_properties belong to AMQP 0-10; this connection uses AMQP 1.0")
        if name not in _KNOWN:
            raise NotFoundError("argument of addBroker", name, _KNOWN)
    if connectArgs.get("service") not in (None, "qpidd"):
        raise ConstraintError(
            "argument service of addBroker", "SASL service", connectArgs["service"], "must be 'qpidd'"
        )
    heartbeat = connectArgs.get("heartbeat")
    return AddBrokerOptions(
        url=url,
        timeout=_seconds("timeout", timeout, CONNECT_TIME),
        session_timeout=_seconds("sessTimeout", sessTimeout, SESSION_TIME),
        mechanisms=_names(mechanisms),
        username=connectArgs.get("username") or url.authName,
        password=connectArgs.get("password") or url.authPass,
        heartbeat=None if heartbeat is None else _seconds("heartbeat", heartbeat, 0.0),
        tls=_tls(url, {name: connectArgs[name] for name in _TLS if connectArgs.get(name) is not None}),
    )


def _seconds(name: str, value: object, default: float) -> float:
    if value is None:
        return default
    seconds = -1.0
    if isinstance(value, int | float | str):
        with contextlib.suppress(ValueError):
            seconds = float(value)
    if not seconds > 0:
        raise ConstraintError(f"argument {name} of addBroker", "seconds", value, "must be a number above 0")
    return seconds


def _names(mechanisms: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if mechanisms is None:
        return None
    names = tuple(mechanisms.split()) if isinstance(mechanisms, str) else tuple(mechanisms)
    return names or None


def _tls(url: BrokerURL, given: Mapping[str, Any]) -> ssl.SSLContext | None:
    if url.scheme != "amqps":
        if given:
            raise CallerError(f"addBroker: {', '.join(given)} need a URL that starts with amqps://")
        return None
    try:
        context = ssl.create_default_context(cafile=given.get("ssl_trustfile"))
        if "ssl_certfile" in given:
            context.load_cert_chain(given["ssl_certfile"], given.get("ssl_keyfile"))
        elif "ssl_keyfile" in given:
            raise CallerError("addBroker: ssl_keyfile needs ssl_certfile")
    except OSError as error:
        raise CallerError(f"addBroker: cannot use the TLS files: {error}") from error
    context.check_hostname = not given.get("ssl_skip_hostname_check", False)
    return context
