"""Options of a connection, under the published names, as one frozen object.

Source: High Level Client API, "Extended Address Options" (reconnect options); published Python API, `Connection`.
"""

from __future__ import annotations

import itertools
import re
import ssl
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import attrs

from qmf.bus.client.settings import AccessToken
from qmf.bus.url import BusUrl, UrlError, parse_url
from qmf.messaging.content_types import ContentTypes
from qmf.messaging.exceptions import ConnectionError, ContentError, VersionError

#: Options of the published API without a meaning here: there are no SASL security layers and no cache of addresses,
#: asyncio sets TCP_NODELAY, and reconnecting is always logged.
_WITHOUT_EFFECT = frozenset(
    {"sasl_service", "sasl_min_ssf", "sasl_max_ssf", "address_ttl", "tcp_nodelay", "reconnect_log"}
)
#: Bytes of the largest message that is received unless an option says otherwise. Programs decide what they send each
#: other, and brokers what they take: this is only above what a program can use.
MAX_MESSAGE_SIZE = 1024 * 1024 * 1024
_TRANSPORTS = {"tcp": False, "ssl": True, "tcp+tls": True}


@attrs.frozen
class ReconnectOptions:
    """What happens after the loss of a connection.

    Attributes:
        enabled: whether the connection is opened again.
        timeout: seconds after which no further attempt is made; None for no limit.
        limit: number of attempts; None for no limit.
        interval_min, interval_max: seconds between attempts: the first one follows at once, the second after
            `interval_min`, and each further interval is twice as long, up to `interval_max`.
    """

    enabled: bool = False
    timeout: float | None = None
    limit: int | None = None
    interval_min: float = 1.0
    interval_max: float = 120.0

    def waits(self, again: bool) -> Iterator[float]:
        """Seconds to wait before each attempt; it ends when no further attempt shall be made.

        Args:
            again: False for the first connection, whose first attempt is not counted; True after a loss.
        """
        if again and not self.enabled:
            return
        begin, interval = time.monotonic(), self.interval_min
        yield 0.0
        for attempt in itertools.count(1):
            limited = self.limit is not None and attempt >= self.limit + (not again)
            late = self.timeout is not None and time.monotonic() + interval > begin + self.timeout
            if not self.enabled or limited or late:
                return
            yield interval
            interval = min(interval * 2, self.interval_max)


@attrs.frozen
class ConnectionOptions:
    """How to connect.

    Attributes:
        urls: brokers to try in their order, at least one.
        username, password: for SASL; those of a URL go first.
        token: access token to log in with, or what returns the one for each login; None for none.
        mechanisms: names of SASL mechanisms that may be used; None for the strongest that the broker offers.
        heartbeat: seconds after which a silent broker is asked for a sign of life; it is considered lost after twice
            that. None: never.
        reconnect: see there.
        ssl_context: for TLS; None for one that trusts the system's authorities.
        properties: of the connection, shown by the management tools of brokers.
        container: the container id; None for one that the connection makes.
        max_message_size: bytes of the largest message that is received. A receiver that gets a larger one leaves it in
            the queue, and fails.
        content_types: what senders and receivers apply to messages with their names and classes.
    """

    urls: tuple[BusUrl, ...]
    username: str | None = None
    password: str | None = attrs.field(default=None, repr=False)
    token: AccessToken | None = attrs.field(default=None, repr=False)
    mechanisms: tuple[str, ...] | None = None
    heartbeat: float | None = None
    reconnect: ReconnectOptions = ReconnectOptions()
    ssl_context: ssl.SSLContext | None = None
    properties: Mapping[str, str | int] = attrs.field(factory=dict)
    container: str | None = None
    max_message_size: int = MAX_MESSAGE_SIZE
    content_types: ContentTypes = attrs.field(factory=ContentTypes, eq=False)


def read_options(url: object, options: Mapping[str, Any]) -> ConnectionOptions:
    """The options of `Connection(url, **options)`.

    Args:
        url: text, or an object whose text is the URL; None for the one that the option `host` gives.
        options: by name; `-` in a name stands for `_`.

    Raises:
        ConnectionError: an unknown option, one of a wrong type, or an invalid URL.
        VersionError: a protocol other than AMQP 1.0.
    """
    values = _Options(options)
    host, port = values.take("host", str), values.take("port", int)
    protocol = values.take("protocol", str)
    if protocol is not None and protocol not in ("amqp1.0", "AMQP1.0"):
        raise VersionError(text=f"option protocol: only amqp1.0 is supported, not {protocol!r}")
    tls = values.choice("transport", _TRANSPORTS)
    if url is None and host is None:
        raise ConnectionError(text="a URL, or the option host, is missing")
    urls = [_url(host if url is None else _text(url, "url"), tls, port)]
    urls += [_url(item, tls, port) for item in values.texts("reconnect_urls")]
    interval = values.take("reconnect_interval", float)
    interval_min, interval_max = (
        values.take("reconnect_interval_min", float),
        values.take("reconnect_interval_max", float),
    )
    reconnect = ReconnectOptions(
        enabled=bool(values.take("reconnect", bool)),
        timeout=values.take("reconnect_timeout", float),
        limit=values.take("reconnect_limit", int),
        interval_min=_first(interval_min, interval, 1.0),
        interval_max=_first(interval_max, interval, 120.0),
    )
    mechanisms = values.take("sasl_mechanisms", str)
    result = ConnectionOptions(
        urls=tuple(urls),
        username=values.take("username", str),
        password=values.take("password", str),
        token=_token(values),
        mechanisms=None if mechanisms is None else tuple(mechanisms.split()),
        heartbeat=values.take("heartbeat", float) or None,
        reconnect=reconnect,
        ssl_context=_ssl_context(values) if any(item.tls for item in urls) else None,
        properties=values.take("client_properties", dict) or {},
        container=values.take("container_id", str),
        max_message_size=_max_message_size(values),
        content_types=_content_types(values),
    )
    values.finish()
    return result


def _token(values: _Options) -> AccessToken | None:
    given = values.take("token", object)
    if given is None or isinstance(given, str) or callable(given):
        return cast("AccessToken | None", given)
    raise ConnectionError(text=f"option token: must be a text or a function, not a {type(given).__name__}")


def _max_message_size(values: _Options) -> int:
    size = values.take("max_message_size", int)
    if size is not None and size <= 0:
        raise ConnectionError(text=f"option max_message_size: must be a number of bytes above 0, not {size}")
    return MAX_MESSAGE_SIZE if size is None else int(size)


def _content_types(values: _Options) -> ContentTypes:
    given = values.take("content_types", Iterable)
    if isinstance(given, ContentTypes):
        return given
    try:
        return ContentTypes(given or ())
    except ContentError as error:
        raise ConnectionError(text=f"option content_types: {error}") from error


def _text(value: object, name: str) -> str:
    """The text of a URL, which may be an object of a class of its own, such as `qmf.messaging.util.URL`."""
    if value is None or isinstance(value, bytes | int | float | Mapping | list | tuple):
        raise ConnectionError(text=f"option {name}: must be a URL, not {value!r}")
    return str(value)


def _first(*values: float | None) -> float:
    return next(value for value in values if value is not None)


def _url(text: str, tls: bool | None, port: int | None) -> BusUrl:
    """A URL as of `parse_url`, or in the manual's form ``amqp:tcp:host:port``."""
    match = re.match(r"(amqps?):(?!//)", text)
    rest = text[match.end() :] if match else text
    kind = re.match(r"(tcp|ssl):", rest) if match else None
    if match:
        secure = match[1] == "amqps" or bool(kind and kind[1] == "ssl")
        text = f"{'amqps' if secure else 'amqp'}://{rest[kind.end() :] if kind else rest}"
    try:
        url = parse_url(text, any_port=True)
    except UrlError as error:
        raise ConnectionError(text=str(error)) from error
    if tls and not url.tls:
        default = url.port == BusUrl(url.host).port and not re.search(r":5672/?\Z", text)
        url = attrs.evolve(url, tls=True, port=5671 if default else url.port)
    has_port = re.search(r":\d+/?\Z", text) is not None
    return url if port is None or has_port else attrs.evolve(url, port=port)


def _ssl_context(values: _Options) -> ssl.SSLContext:
    own = values.take("ssl_context", ssl.SSLContext)
    if own is not None:
        return cast("ssl.SSLContext", own)
    trusted = values.take("ssl_trustfile", str)
    certificate, key = values.take("ssl_certfile", str), values.take("ssl_keyfile", str)
    skip = bool(values.take("ssl_skip_hostname_check", bool))
    for name, path in (("ssl_trustfile", trusted), ("ssl_certfile", certificate), ("ssl_keyfile", key)):
        if path is not None and not Path(path).is_file():
            raise ConnectionError(text=f"option {name}: there is no file {path!r}")
    try:
        context = ssl.create_default_context(cafile=trusted)
        if certificate is not None:
            context.load_cert_chain(certificate, key)
    except (ssl.SSLError, OSError) as error:
        raise ConnectionError(text=f"TLS files cannot be read: {error}") from error
    context.check_hostname = not skip
    return context


class _Options:
    """Options that are read one by one; what is left over is unknown."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        named = {name.replace("-", "_"): value for name, value in values.items()}
        self._values = {name: value for name, value in named.items() if name not in _WITHOUT_EFFECT}

    def take(self, name: str, kind: type[Any]) -> Any:
        """The value of an option, or None."""
        value = self._values.pop(name, None)
        if value is None or (isinstance(value, kind) and (kind is bool or not isinstance(value, bool))):
            return value
        if kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        raise ConnectionError(text=f"option {name}: must be {kind.__name__}, not {value!r}")

    def choice(self, name: str, choices: Mapping[str, bool]) -> bool | None:
        value = self.take(name, str)
        if value is None:
            return None
        if value not in choices:
            raise ConnectionError(text=f"option {name}: must be {' or '.join(choices)}, not {value!r}")
        return choices[value]

    def texts(self, name: str) -> Sequence[str]:
        value = self._values.pop(name, None)
        items = value.split(",") if isinstance(value, str) else value or ()
        if not isinstance(items, Iterable):
            raise ConnectionError(text=f"option {name}: must be a list of URLs, not {value!r}")
        return [_text(item, name).strip() for item in items]

    def finish(self) -> None:
        """Refuse what was not read. The options of TLS may be given without TLS."""
        unknown = [name for name in self._values if not name.startswith("ssl_")]
        if unknown:
            raise ConnectionError(text=f"unknown connection option {unknown[0]!r}")
