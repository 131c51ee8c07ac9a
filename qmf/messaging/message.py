"""Messages as programs see them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ClassVar, Generic

from qmf.errors import unknown_attribute
from qmf.messaging.addresses import Address
from qmf.messaging.constants import REJECTED, RELEASED, Constant
from qmf.messaging.typing import ContentT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

#: Content types that the class of the content implies.
_CONTENT_TYPES: dict[type, str] = {dict: "amqp/map", list: "amqp/list", str: "text/plain"}


#: `Address` of a text; the replies to many requests go to the same one.
_address = functools.lru_cache(maxsize=128)(Address)


class _Unspecified:
    """Type of the default of `content_type`: derived from the content."""


_UNSPECIFIED = _Unspecified()


#: The attributes of a message of which none is given.
_UNSET: dict[str, Any] = {
    **dict.fromkeys(("id", "subject", "to", "user_id", "_reply_to", "correlation_id", "durable", "priority", "ttl")),
    "redelivered": False,
    **dict.fromkeys(("delivery", "properties", "content", "content_type")),
}


def implied_content_type(content: object) -> str | None:
    """The content type that belongs to a content: of dict, list and str; None for bytes and None."""
    kind = type(content)
    if kind is bytes or kind is str:
        return None if kind is bytes else "text/plain"
    return next((name for kind, name in _CONTENT_TYPES.items() if isinstance(content, kind)), None)


class Message(Generic[ContentT]):
    """A message: standard properties, properties of the application, and content.

    For type checkers, `Message[T]` has content of class T; `Message` alone stands for `Message[Any]`.

    Attributes:
        content: str, bytes, int, float, bool, `datetime` with a zone (times are received in UTC, in milliseconds),
            `Decimal` (of 34 digits), `UUID`, None, or a dict or list of all these.
        content_type: such as ``text/plain``, ``amqp/map``, ``amqp/list``; derived from the content unless given.
        id: message id; str, `UUID`, int or bytes, or None.
        subject: None for that of the sender's address.
        to: the node to which an anonymous sender sends; of a received message its destination.
        user_id: of the sending user; brokers refuse one that is not the authenticated user. str, or None.
        reply_to: where answers go: an `Address`, equal to its text; None for nowhere. Text is converted when it is set.
        correlation_id: of the request that this message answers; types as of `id`.
        durable: True to keep the message over a restart of the broker, if its queue is durable.
        priority: 0 to 255; None for the default, 4.
        ttl: seconds until the message expires; None for no limit.
        redelivered: True if the message was delivered before.
        properties: values by name: str, bytes, bool, int, float, None, `UUID`, `datetime`.
        message_format: 0 for a message as AMQP defines it. Any other number of 32 bits says what the bytes of `content`
            are, which then stand for the whole encoded message: no other attribute is sent or received.
        delivery: of a received message what `Session.acknowledge` needs to find it; else None.

    Source: High Level Client API, "Messaging Properties"; published Python API, `Message`.
    """

    id: object
    subject: str | None
    to: str | None
    user_id: str | None
    correlation_id: object
    durable: bool | None
    priority: int | None
    ttl: float | None
    redelivered: bool
    delivery: Any
    properties: dict[str, Any]
    content: ContentT
    content_type: str | None
    message_format = 0
    _reply_to: Address | None
    #: Whether objects of the class may have attributes that the API does not have: those of programs may.
    _any_attributes: ClassVar[bool] = False

    def __init_subclass__(cls, *, any_attributes: bool = True) -> None:
        super().__init_subclass__()
        cls._any_attributes = any_attributes

    def __init__(
        self,
        content: ContentT = None,  # type: ignore[assignment]  # without content, it is a `Message[None]`
        content_type: str | _Unspecified | None = _UNSPECIFIED,
        id: object = None,
        subject: str | None = None,
        user_id: str | None = None,
        reply_to: str | None = None,
        correlation_id: object = None,
        durable: bool | None = None,
        priority: int | None = None,
        ttl: float | None = None,
        properties: Mapping[str, object] | None = None,
        to: str | None = None,
    ) -> None:
        """See the attributes.

        Raises:
            MalformedAddress: `reply_to` is not an address.
        """
        attributes = _UNSET.copy()
        attributes["content"] = content
        attributes["properties"] = {} if properties is None else dict(properties)
        if content_type is not _UNSPECIFIED:
            attributes["content_type"] = content_type
        elif type(content) is not bytes:
            attributes["content_type"] = implied_content_type(content)
        if reply_to is not None:
            attributes["_reply_to"] = _address(reply_to)
        if correlation_id is not None:
            attributes["correlation_id"] = correlation_id
        if id is not None or subject is not None or to is not None or user_id is not None:
            attributes |= {"id": id, "subject": subject, "to": to, "user_id": user_id}
        if durable is not None or priority is not None or ttl is not None:
            attributes |= {"durable": durable, "priority": priority, "ttl": ttl}
        set_attributes(self, attributes)  # at once, since each single assignment is checked

    def __setattr__(self, name: str, value: object) -> None:
        """Set an attribute that messages have.

        Raises:
            AttributeError: messages have no such attribute; it has similar names. Objects of subclasses have any.
        """
        if name not in _ATTRIBUTES and not self._any_attributes:
            raise unknown_attribute(type(self), name, _ATTRIBUTES)
        _set(self, name, value)

    @property
    def reply_to(self) -> Address | None:
        """Where answers go."""
        return self._reply_to

    @reply_to.setter
    def reply_to(self, value: str | None) -> None:
        self._reply_to = None if value is None else _address(value)

    def __repr__(self) -> str:
        given = {name: getattr(self, name) for name in _SHOWN_IF_SET}
        parts = [f"{name}={value!r}" for name, value in given.items() if value is not None]
        parts += [f"{name}={value!r}" for name in _SHOWN_IF_TRUE if (value := getattr(self, name))]
        if self.content_type != implied_content_type(self.content):
            parts.append(f"content_type={self.content_type!r}")
        if self.content is not None:
            parts.append(f"content={self.content!r}" if parts else repr(self.content))
        return f"Message({', '.join(parts)})"


#: Sets all attributes of a message, by name, without a check.
set_attributes: Callable[[Message[Any], dict[str, Any]], None] = vars(Message)["__dict__"].__set__
#: Sets any attribute.
_set = object.__setattr__
_ATTRIBUTES = frozenset((*Message.__annotations__, "message_format", "reply_to")) - {"_any_attributes"}
_SHOWN_IF_SET = ("id", "subject", "to", "user_id", "reply_to", "correlation_id", "priority", "ttl")
_SHOWN_IF_TRUE = ("durable", "redelivered", "properties", "message_format")


class Disposition:
    """What a program decides about a received message, for `Session.acknowledge`.

    Attributes:
        type: `REJECTED` or `RELEASED`.
        options: of a rejection `code` and `text`, sent to the broker; of a release `set_redelivered`: the attempt
            to deliver it counts, and `undeliverable_here`: it shall not be delivered to this receiver again.

    Source: published Python API, `Disposition`.
    """

    def __init__(self, type: Constant, **options: Any) -> None:
        """Make a decision.

        Raises:
            ValueError: the type or an option is unknown.
        """
        allowed = {REJECTED: {"code", "text"}, RELEASED: {"set_redelivered", "undeliverable_here"}}.get(type)
        if allowed is None:
            raise ValueError(f"a disposition is REJECTED or RELEASED, not {type!r}")
        if unknown := sorted(options.keys() - allowed):
            raise ValueError(f"unknown option {unknown[0]!r} of {type!r}; there is {' and '.join(sorted(allowed))}")
        self.type = type
        self.options = options

    def __repr__(self) -> str:
        parts = [repr(self.type), *(f"{name}={value!r}" for name, value in self.options.items())]
        return f"Disposition({', '.join(parts)})"
