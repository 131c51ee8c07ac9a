"""Content types: how objects of programs become the bytes of a content, and back. No I/O.

A `ContentType` is a name and two functions, so that every library that makes bytes of objects fits. `ContentTypes` is
the registry of a connection; there is no global one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any, Generic
from uuid import UUID

import attrs

from qmf.messaging.exceptions import ContentError, DecodeError, EncodeError
from qmf.messaging.message import Message, implied_content_type, set_attributes
from qmf.messaging.typing import ContentT

#: Classes of content that AMQP has values of.
AMQP_CLASSES: tuple[type, ...] = (str, bytes, dict, list, bool, int, float, datetime, Decimal, UUID, type(None))


@attrs.frozen
class ContentType(Generic[ContentT]):
    """How content of one kind is written as bytes.

    With pydantic: ``ContentType("application/json", lambda order: order.model_dump_json().encode(),
    Order.model_validate_json, Order)``; with msgspec: ``ContentType("application/msgpack", msgspec.msgpack.encode,
    msgspec.msgpack.Decoder(Order).decode, Order)``.

    Attributes:
        name: that messages carry, such as ``application/json``; parameters do not count.
        encode: makes the bytes; any error becomes an `EncodeError`.
        decode: makes the content again; any error becomes a `DecodeError`.
        of: the class of the content, for a sender or receiver that is given the class, and for messages that do not
            name a content type; None for one that is chosen by its name only.
    """

    name: str = attrs.field()
    encode: Callable[[ContentT], bytes]
    decode: Callable[[bytes], ContentT]
    of: type[ContentT] | None = attrs.field(default=None)

    @name.validator
    def _check_name(self, _: attrs.Attribute[str], value: str) -> None:
        if plain(value).count("/") != 1:
            raise ContentError(text=f"a content type has a name such as 'application/json', not {value!r}")

    @of.validator
    def _check_of(self, _: attrs.Attribute[Any], value: type | None) -> None:
        if value in AMQP_CLASSES:
            raise ContentError(
                text=f"content of {getattr(value, '__name__', value)} is a value of AMQP; content type {self.name!r} "
                "cannot be for all of it: leave out the class"
            )

    def write(self, content: ContentT) -> bytes:
        """The bytes of a content.

        Raises:
            EncodeError: `encode` failed.
        """
        try:
            return self.encode(content)
        except Exception as error:
            kind = type(content).__name__
            raise EncodeError(text=f"content of {kind} cannot be encoded as {self.name!r}: {error}") from error

    def read(self, data: bytes) -> ContentT:
        """The content of these bytes.

        Raises:
            DecodeError: `decode` failed.
        """
        try:
            return self.decode(data)
        except Exception as error:
            raise DecodeError(text=f"content cannot be decoded as {self.name!r}: {error}") from error


def plain(name: str) -> str:
    """The name of a content type without parameters, in lower case."""
    return name.partition(";")[0].strip().lower()


def _write_json(content: object) -> bytes:
    return json.dumps(content, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


#: JSON by the standard library.
JSON: ContentType[Any] = ContentType("application/json", _write_json, json.loads)


class ContentTypes:
    """The content types that a connection knows. It cannot be changed."""

    def __init__(self, types: Iterable[ContentType[Any]] = ()) -> None:
        """Make the content types of a connection.

        Args:
            types: with different names, and for different classes.

        Raises:
            ContentError: two have the same name or class.
        """
        self._by_name: dict[str, ContentType[Any]] = {}
        self._by_class: dict[type, ContentType[Any]] = {}
        for item in types:
            if not isinstance(item, ContentType):
                raise ContentError(text=f"content types must be of class ContentType, not {item!r:.60}")
            if plain(item.name) in self._by_name:
                raise ContentError(text=f"two content types have the name {item.name!r}")
            if item.of in self._by_class:
                raise ContentError(text=f"two content types are for {item.of.__name__}")
            self._by_name[plain(item.name)] = item
            if item.of is not None:
                self._by_class[item.of] = item

    def __iter__(self) -> Iterator[ContentType[Any]]:
        return iter(self._by_name.values())

    def __bool__(self) -> bool:
        return bool(self._by_name)

    def __repr__(self) -> str:
        return f"ContentTypes({[*self._by_name.values()]!r})"

    def find(self, name: str | None) -> ContentType[Any] | None:
        """The content type of that name, or None."""
        return None if name is None else self._by_name.get(plain(name))

    def of(self, kind: type) -> ContentType[Any] | None:
        """The content type for objects of a class, that of its nearest base; or None."""
        return next((self._by_class[base] for base in kind.__mro__ if base in self._by_class), None)

    def resolve(self, content: object) -> ContentType[Any] | type | None:
        """What the argument `content` of a sender or receiver stands for: a content type, or a class of AMQP's values.

        Raises:
            ContentError: it is a class without a content type, or something else.
        """
        if content is None or isinstance(content, ContentType):
            return content
        if not isinstance(content, type):
            raise ContentError(text=f"content must be a ContentType or a class, not {content!r:.60}")
        if (found := self.of(content)) is not None:
            return found
        if content in AMQP_CLASSES:
            return content
        raise ContentError(
            text=f"no content type is for {content.__name__}: give a ContentType, or have one in the option "
            "content_types of the connection"
        )


class ContentWriter:
    """Applies content types to the messages of one sender."""

    def __init__(self, types: ContentTypes, content: object) -> None:
        """Make what applies the content types of a sender.

        Args:
            types: of the connection.
            content: see `ContentTypes.resolve`.
        """
        self._types = types
        resolved = types.resolve(content)
        self._own = resolved if isinstance(resolved, ContentType) else None

    def __bool__(self) -> bool:
        """False if it changes no message."""
        return self._own is not None or bool(self._types)

    def apply(self, message: Message) -> Message:
        """The message as it is sent, with bytes as its content where a content type is for it.

        Bytes, and text that names a content type, are sent as they are: they are encoded already. The sender's own
        content type is applied to text as well.

        Raises:
            EncodeError: the content cannot be encoded, or has another content type than the sender.
        """
        content, name = message.content, message.content_type
        if isinstance(content, bytes | bytearray | memoryview) or message.message_format:
            return message
        given = name if name != implied_content_type(content) else None
        own = self._own
        if own is not None and (given is None or plain(given) == plain(own.name)):
            found: ContentType[Any] | None = own
        elif given is not None:
            found = None if isinstance(content, str) else self._types.find(given)
        else:
            found = self._types.of(type(content))
        if found is None:
            return message
        sent: Message = Message.__new__(Message)
        written = {"content": found.write(content), "content_type": found.name if given is None else given}
        set_attributes(sent, {**vars(message), **written})
        return sent


class ContentReader:
    """Applies content types to the messages of one receiver."""

    def __init__(self, types: ContentTypes, content: object) -> None:
        """Make what applies the content types of a receiver.

        Args:
            types: of the connection.
            content: see `ContentTypes.resolve`.
        """
        self._types = types
        self._own = types.resolve(content)

    def __bool__(self) -> bool:
        """False if it changes no message."""
        return self._own is not None or bool(self._types)

    def apply(self, message: Message) -> None:
        """Set the content to what its bytes stand for.

        Raises:
            DecodeError: it is not what the receiver asks for, or cannot be decoded; the message is as it was.
        """
        own = self._own
        if isinstance(own, type):
            if type(message.content) is not own or message.message_format:
                raise DecodeError(text=f"content of {type(message.content).__name__}, where {own.__name__} is expected")
        elif own is not None:
            message.content = own.read(self._bytes(message, own))
        elif (
            not message.message_format
            and isinstance(message.content, bytes | str)
            and (found := self._types.find(message.content_type)) is not None
        ):
            message.content = found.read(_to_bytes(message.content))

    def _bytes(self, message: Message, own: ContentType[Any]) -> bytes:
        """The bytes that the receiver's content type shall decode: with its name, or none."""
        content, name = message.content, message.content_type
        if not isinstance(content, bytes | str) or message.message_format:
            raise DecodeError(text=f"content of {type(content).__name__}, where {own.name!r} is expected")
        if (
            name is not None
            and name != implied_content_type(content)
            and plain(name) not in (plain(own.name), _UNKNOWN)
        ):
            raise DecodeError(text=f"content type {name!r}, where {own.name!r} is expected")
        return _to_bytes(content)


#: The content type of bytes of which nothing is said.
_UNKNOWN = "application/octet-stream"


def _to_bytes(content: bytes | str) -> bytes:
    return content if isinstance(content, bytes) else content.encode()
