"""HTTP messages to messages of the bus, and back. No I/O.

Headers of a request become properties of the message: ``http_`` and the name in lower case, with ``$`` for each ``-``;
so selectors can use them. Those that belong to the connection, to the request alone or to the sender's credentials do
not. The properties become headers again when the message is pulled or pushed, but for names that would change what a
browser or a proxy does with the answer.

Text (``text/...``) becomes text, everything else bytes. Messages that others sent are served by their content: text as
``text/plain``, maps and lists as JSON, bytes as their content type says.

Source: HornetQ REST interface.
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterable, Mapping

import attrs

from qmf.messaging import Message
from qmf.web.json_values import to_json

PREFIX = "http_"


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Headers that are about the connection, the request or its sender, and about this interface.
_NOT_SENT = _words("""
    accept accept-charset accept-encoding accept-language accept-wait authorization cache-control connection
    content-length cookie date dnt expect forwarded from host if-match if-modified-since if-none-match if-range
    if-unmodified-since keep-alive origin pragma priority proxy-authorization proxy-connection range referer te
    trailer transfer-encoding upgrade upgrade-insecure-requests user-agent via
""")
#: Headers of an answer that a message must not set.
_NOT_SHOWN = _words("""
    age allow alt-svc clear-site-data content-length content-security-policy content-security-policy-report-only
    cross-origin-embedder-policy cross-origin-opener-policy cross-origin-resource-policy etag expires last-modified
    location nel permissions-policy refresh referrer-policy report-to reporting-endpoints retry-after server
    service-worker-allowed set-cookie set-cookie2 sourcemap strict-transport-security timing-allow-origin vary
    warning www-authenticate proxy-authenticate x-content-type-options x-frame-options x-xss-protection
    x-accel-redirect x-dns-prefetch-control x-powered-by x-robots-tag x-sendfile x-ua-compatible
""")
_PREFIXES = ("access-control-", "msg-", "proxy-", "sec-", "x-forwarded-", "x-csrf-")

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+\Z")
_VALUE = re.compile(r"[\x20-\x7e\xa0-\xff\t]*\Z")
_CHARSET = re.compile(r";\s*charset\s*=\s*\"?([\w.-]+)", re.IGNORECASE)


@attrs.frozen(kw_only=True)
class DeliveryOptions:
    """How a message is to be sent: the query parameters of its creation.

    Attributes:
        durable: it is kept over a restart of the broker, if its queue is durable.
        priority: 0 to 9; None for the default.
        ttl: seconds until it expires; None: never.
    """

    durable: bool = False
    priority: int | None = None
    ttl: float | None = None


@attrs.frozen
class HttpContent:
    """A message as HTTP carries it.

    Attributes:
        body: the bytes.
        content_type: of the body.
        headers: others, by name in lower case.
    """

    body: bytes
    content_type: str
    headers: Mapping[str, str]


def property_name(header: str) -> str:
    """The property that a header becomes."""
    return PREFIX + header.lower().replace("-", "$")


def to_message(
    body: bytes, headers: Iterable[tuple[str, str]], delivery: DeliveryOptions, id: str | None = None
) -> Message:
    """The message for a request that creates one.

    Args:
        body: of the request.
        headers: of the request; of several with one name the values are joined.
        delivery: how it is to be sent.
        id: of the message; None for a new one.
    """
    properties: dict[str, object] = {}
    content_type = None
    for name, value in headers:
        lower = name.lower()
        if lower == "content-type":
            content_type = value
        if lower in _NOT_SENT or lower.startswith(_PREFIXES):
            continue
        key = property_name(lower)
        properties[key] = f"{properties[key]}, {value}" if key in properties else value
    content: str | bytes = body
    if content_type is not None and content_type.lower().startswith("text/"):
        content = _text(body, content_type)
    message = Message(
        content,
        content_type,
        id=str(uuid.uuid4()) if id is None else id,
        durable=delivery.durable,
        priority=delivery.priority,
        ttl=delivery.ttl,
        properties=properties,
    )
    if isinstance(content, bytes) and content_type is not None and content_type.lower().startswith(("text/", "amqp/")):
        # Bytes that are not what the type says: others must not be told so.
        message.content_type = None
    return message


def _text(body: bytes, content_type: str) -> str | bytes:
    match = _CHARSET.search(content_type)
    try:
        return body.decode(match[1] if match else "utf-8")
    except (LookupError, UnicodeDecodeError):
        return body


def to_http(message: Message) -> HttpContent:
    """The body and the headers for a message, whoever sent it."""
    headers: dict[str, str] = {}
    for key, value in message.properties.items():
        if isinstance(value, str) and key.startswith(PREFIX):
            name = key[len(PREFIX) :].replace("$", "-").lower()
            if is_shown(name, value):
                headers[name] = value
    given = headers.pop("content-type", None)
    if given is None and isinstance(message.content_type, str) and _VALUE.match(message.content_type):
        # These describe an encoding that others would have to know.
        given = None if message.content_type.startswith("amqp/") else message.content_type
    body, content_type = _body(message.content, given)
    return HttpContent(body, content_type, headers)


def is_shown(name: str, value: str) -> bool:
    """True if a property may be a header of an answer, or of a push."""
    refused = name in _NOT_SHOWN or name in _NOT_SENT or name.startswith(_PREFIXES)
    return not refused and _TOKEN.match(name) is not None and _VALUE.match(value) is not None


def _body(content: object, given: str | None) -> tuple[bytes, str]:
    """The bytes of a content, and their content type: the one that it was given, if they are of it."""
    if content is None or isinstance(content, bytes | bytearray | memoryview):
        return bytes(content or b""), given or "application/octet-stream"
    if not isinstance(content, str):
        return json.dumps(to_json(content), ensure_ascii=False, allow_nan=False).encode(), "application/json"
    charset = _CHARSET.search(given or "")
    if given is None or charset is None:
        return content.encode("utf-8", "replace"), f"{given or 'text/plain'}; charset=utf-8"
    try:
        return content.encode(charset[1]), given
    except (LookupError, UnicodeEncodeError):
        return content.encode("utf-8", "replace"), f"{given.partition(';')[0].strip()}; charset=utf-8"
