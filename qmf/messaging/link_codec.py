"""`contents.encode` and `decode` for the messages of one link, which have most in common.

What comes before the content of most messages of a link is the same, but for their ids: of those sent, what a message
without properties has; of those received, what the message before had. It is encoded, and decoded, once. All other
messages go the general way, and the result is the same.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

from qmf.codec.message import IdForm, Section, split_message
from qmf.messaging.addresses import Address
from qmf.messaging.arrivals import arrival_functions
from qmf.messaging.content_types import ContentReader, ContentWriter
from qmf.messaging.contents import (
    FormattedData,
    decode,
    decode_formatted,
    encode,
    encode_formatted,
    encode_leading,
    has_nested,
    is_text,
)
from qmf.messaging.exceptions import DecodeError, EncodeError
from qmf.messaging.message import Message, implied_content_type, set_attributes

#: Bytes of a short content, and of what is remembered of the sections before it, at most.
_SHORT, _MAX_HEAD = 0xFF, 500
#: Type codes of content in the short and the long form, by its class, and what its section begins with.
_CODES: dict[type, tuple[int, int, Section, bytes]] = {
    bytes: (0xA0, 0xB0, Section.DATA, b"\x00\x53\x75"),
    str: (0xA1, 0xB1, Section.VALUE, b"\x00\x53\x77"),
}
#: Content types that are not sent.
_IMPLIED = {kind: implied_content_type(kind()) for kind in _CODES}
#: Type and size of short content by its size, and type of long content.
_SIZES = {kind: tuple(bytes((codes[0], size)) for size in range(_SHORT + 1)) for kind, codes in _CODES.items()}
_LONG_CODES = {kind: bytes((codes[1],)) for kind, codes in _CODES.items()}

#: Attributes of messages, by the names of ids in a form.
_IDS = {"message_id": "id", "correlation_id": "correlation_id"}


class MessageEncoder:
    """Encodes the messages of one sender; on any thread.

    Attributes:
        lists_as_data: see `contents.encode`.
        takes_decimals: False where the broker closes the connection for content that is one `Decimal`.
    """

    def __init__(self, subject: str | None, to: str | None, writer: ContentWriter | None = None) -> None:
        """Make the encoder of a sender.

        Args:
            subject, to: see `contents.encode`; so is `durable`, which may be set.
            writer: applies content types to the messages first; None for none.
        """
        self._writer = writer or None
        self.lists_as_data = False
        self.takes_decimals = True
        self._subject = subject
        self._to = to
        #: `durable` of messages that do not say, and by the class of the content what comes before its type and size in
        #: a message without properties; together, because another thread may replace them.
        self._defaults: tuple[bool | None, dict[type, bytes]] = (None, {})
        #: Of the last message with a correlation id: where its answer goes, and all that such messages have in common.
        self._form: tuple[Address | None, bool | None, IdForm | None] = (None, None, None)

    @property
    def durable(self) -> bool | None:
        """See `contents.encode`."""
        return self._defaults[0]

    @durable.setter
    def durable(self, durable: bool | None) -> None:
        self._defaults = durable, {}

    def encode(self, message: Message) -> bytes:
        """See `contents.encode`."""
        if message.message_format:
            return encode_formatted(message)
        if self._writer is not None:
            message = self._writer.apply(message)
        content = message.content
        kind = type(content)
        durable, heads = self._defaults
        if kind is Decimal and not self.takes_decimals:
            raise EncodeError(
                text="content must not be a Decimal: qpidd closes the connection for it; send it in a list"
            )
        if kind not in _CODES or message.content_type != _IMPLIED[kind] or message.properties != {}:
            return encode(message, self._subject, self._to, durable=durable, lists_as_data=self.lists_as_data)
        try:
            data: bytes = content if kind is bytes else content.encode()
            if not _is_plain(message, durable):
                head = encode_leading(message, self._subject, self._to, durable, None) + _CODES[kind][3]
            elif message.correlation_id is None and message._reply_to is None:
                head = heads.get(kind) or self._learn(kind, durable, heads)
            else:
                head = self._encode_request(message, durable) + _CODES[kind][3]
        except (ValueError, TypeError, OverflowError, EncodeError):  # it is raised there; lone surrogates are sent
            return encode(message, self._subject, self._to, durable=durable)
        if (size := len(data)) <= _SHORT:
            return head + _SIZES[kind][size] + data
        return b"".join((head, _LONG_CODES[kind], size.to_bytes(4), data))

    def _encode_request(self, message: Message, durable: bool | None) -> bytes:
        """The leading sections of a message that has a correlation id, a place for its answer, and nothing else."""
        id, reply_to = message.correlation_id, message._reply_to
        if type(id) is not str or len(id) > _SHORT or not id.isascii():
            return encode_leading(message, self._subject, self._to, durable, None)
        known_reply_to, known_durable, form = self._form
        if form is None or reply_to is not known_reply_to or durable is not known_durable:
            head = encode_leading(message, self._subject, self._to, durable, None)
            self._form = reply_to, durable, IdForm.of(head)
            return head
        return form.join(id)

    def _learn(self, kind: type, durable: bool | None, heads: dict[type, bytes]) -> bytes:
        head = heads[kind] = encode(Message(kind()), self._subject, self._to, durable=durable)[:-2]
        return head


def _is_plain(message: Message, durable: bool | None) -> bool:
    """Whether a message without properties of the application has nothing but content, a correlation id and a place
    for its answer, and is as durable as others.
    """
    return (
        message.id is None
        and message.subject is None
        and message.to is None
        and message.user_id is None
        and (message.durable is None or (durable is True and message.durable is True))
        and message.priority is None
        and message.ttl is None
    )


class MessageDecoder:
    """Decodes the messages of one receiver; on any thread.

    Attributes:
        kind: the class of the messages.
        known: what the last ones had in common, as `take_apart` takes it: the bytes before the content's type and size,
            or the form with ids that these have; the codes of both forms of this type, whether it is text, and
            attributes of the message.
        take_apart: the compiled function for these, which returns None for others; None without it, or with content
            types.
    """

    def __init__(self, kind: type[Message] = Message, reader: ContentReader | None = None) -> None:
        """Make the decoder of a receiver.

        Args:
            kind: the class of the messages.
            reader: applies content types to the messages; None for none.
        """
        self.kind = kind
        self._reader = reader or None
        #: Together, because another thread may replace them.
        self.known: tuple[bytes | tuple[object, ...], int, int, bool, dict[str, Any]] = (b"\xff", 0, 0, False, {})
        compiled = arrival_functions()
        self._take_apart = None if compiled is None else compiled.take_apart
        self.take_apart = None if self._reader is not None else self._take_apart
        #: The same of messages without ids, and of those with ids.
        self._known_head: tuple[bytes, int, int, bool, dict[str, Any]] = (b"\xff", 0, 0, False, {})
        self._known_form: tuple[IdForm, int, int, bool, dict[str, Any]] | None = None
        #: The bytes before the content of the last message that went the general way.
        self._last = b""
        #: The form of the last one with ids.
        self._last_form: IdForm | None = None

    def decode(self, data: bytes, delivery: object) -> Message:
        """The message, which keeps its delivery; see `contents.decode`.

        Raises:
            DecodeError: as of `contents.decode`; and the content is not what content types ask for: it has the message.
        """
        if self._reader is None:
            return self._decode(data, delivery)
        message = self._decode(data, delivery)
        try:
            self._reader.apply(message)
        except DecodeError as error:
            error.message = message
            raise
        return message

    def _decode(self, data: bytes, delivery: object) -> Message:
        """The message with the content as it came."""
        if type(data) is FormattedData:
            message = decode_formatted(data, self.kind)
            message.delivery = delivery
            return message
        take_apart = self._take_apart
        if take_apart is not None and (alike := take_apart(self.kind, self.known, data, delivery)) is not None:
            assert isinstance(alike, Message)
            return alike
        head, short, long, text, known = self._known_head
        ids: Iterable[tuple[str, str]] = ()
        if data.startswith(head):
            pos = len(head) + 2
        else:
            if (identified := self._known_form) is None or (found := identified[0].find(data)) is None:
                return self._decode_any(data, delivery)
            form, short, long, text, known = identified
            ids, pos = zip(form.ids, found[0], strict=True), found[1] + 2
        try:
            if data[pos - 2] != short or data[pos - 1] != len(data) - pos:
                pos += 3
                if data[pos - 5] != long or int.from_bytes(data[pos - 4 : pos]) != len(data) - pos:
                    return self._decode_any(data, delivery)
            attributes = known.copy()
            attributes["content"] = data[pos:].decode() if text else data[pos:]
        except (IndexError, UnicodeDecodeError):
            return self._decode_any(data, delivery)
        attributes["properties"] = known["properties"].copy()
        attributes["delivery"] = delivery
        for name, value in ids:
            attributes[_IDS[name]] = value
        message = self.kind.__new__(self.kind)
        set_attributes(message, attributes)
        return message

    def _decode_any(self, data: bytes, delivery: object) -> Message:
        """The general way; remembers what two messages in succession have in common."""
        message = decode(data, self.kind)
        content = message.content
        if (form := _CODES.get(type(content))) is not None and (parts := split_message(data)) is not None:
            head, section, body = parts
            short, long, usual, begin = form
            # Binary that should be text is read as text where it can.
            if section is not usual or body != content or (section is Section.DATA and is_text(message.content_type)):
                self._last, self._last_form = b"", None
            elif len(head) <= _MAX_HEAD and not has_nested(message.properties):
                known = {**vars(message), "content": None, "properties": message.properties.copy()}
                rest = short, long, type(content) is str, known
                if head == self._last:
                    self.known = self._known_head = (head + begin, *rest)
                elif (last := self._last_form) is not None and last.find(data) is not None:
                    self._known_form = (last, *rest)
                    self.known = ((tuple(_IDS[name] for name in last.ids), *last.place), *rest)
                self._last, self._last_form = head, IdForm.of(head + begin)
        message.delivery = delivery
        return message
