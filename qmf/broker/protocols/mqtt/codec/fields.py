"""The fields of packets: numbers, texts and binary, and the reader that takes them from the bytes of one packet."""

from __future__ import annotations

from qmf.broker.protocols.mqtt.codec.values import MAX_LENGTH, malformed_packet

#: Bytes of the longest number of variable length.
_MAX_VARIABLE = 4


class PacketFields:
    """Takes fields from the bytes of a packet, in their order."""

    __slots__ = ("_data", "_end", "position")

    def __init__(self, data: bytes, position: int = 0, end: int | None = None) -> None:
        """Begin to read.

        Args:
            data: bytes that contain the packet.
            position: of the first field.
            end: position behind the last one; None for the end of the bytes.
        """
        self._data = data
        self.position = position
        self._end = len(data) if end is None else end

    @property
    def left(self) -> int:
        """Bytes that are left."""
        return self._end - self.position

    def bytes_of(self, count: int) -> bytes:
        """The next bytes.

        Raises:
            MqttError: there are fewer; so do all other methods.
        """
        start, self.position = self.position, self.position + count
        if self.position > self._end:
            raise malformed_packet("a packet ends within a field")
        return self._data[start : self.position]

    def rest(self) -> bytes:
        """All that is left."""
        return self.bytes_of(self.left)

    def byte(self) -> int:
        """A number of one byte."""
        return self.bytes_of(1)[0]

    def short(self) -> int:
        """A number of two bytes."""
        return int.from_bytes(self.bytes_of(2))

    def long(self) -> int:
        """A number of four bytes."""
        return int.from_bytes(self.bytes_of(4))

    def variable(self) -> int:
        """A number of variable length.

        Raises:
            MqttError: it has more than four bytes, or more than it needs.
        """
        value = 0
        for place in range(_MAX_VARIABLE):
            byte = self.byte()
            value |= (byte & 0x7F) << (7 * place)
            if byte < 0x80:
                if place and not byte:
                    raise malformed_packet("a number has more bytes than it needs")
                return value
        raise malformed_packet("a number of variable length has more than four bytes")

    def binary(self) -> bytes:
        """Binary data with its length."""
        return self.bytes_of(self.short())

    def text(self) -> str:
        """A text with its length.

        Raises:
            MqttError: it is not UTF-8, or contains U+0000.
        """
        data = self.binary()
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise malformed_packet(f"a text is not UTF-8: {error.reason}") from error
        if "\0" in text:
            raise malformed_packet("a text contains U+0000")
        return text

    def end(self) -> None:
        """Nothing follows.

        Raises:
            MqttError: something does.
        """
        if self.left:
            raise malformed_packet(f"{self.left} bytes too many in a packet")


def encode_variable(value: int) -> bytes:
    """A number of variable length.

    Raises:
        ValueError: it is negative or too large.
    """
    if 0 <= value < 0x80:
        return bytes((value,))
    if not 0 <= value <= MAX_LENGTH:
        raise ValueError(f"{value} does not fit a number of variable length")
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def encode_binary(value: bytes) -> bytes:
    """Binary data with its length.

    Raises:
        ValueError: it is longer than 65,535 bytes.
    """
    if len(value) > 0xFFFF:
        raise ValueError(f"{len(value)} bytes do not fit a field of MQTT")
    return len(value).to_bytes(2) + value


def encode_text(value: str) -> bytes:
    """A text with its length; errors as of `encode_binary`."""
    return encode_binary(value.encode())
