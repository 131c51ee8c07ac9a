"""Maps and lists that are values of objects, such as references: those of many objects are the same."""

from __future__ import annotations

import struct

from qmf.codec.amqp010 import decode_list_at, decode_map_at
from qmf.codec.type_codes import LIST, MAP
from qmf.errors import DecodeError

#: Maps or lists remembered, and bytes that each may have.
MAX_NESTED, MAX_NESTED_SIZE = 1000, 500


class NestedValues:
    """Checks and reads maps, or lists, and remembers those that it has read.

    Attributes:
        known: by their bytes, size field included; None for those that hold a map or list, of which no copy is given.
    """

    __slots__ = ("_decode", "_depth", "known")

    def __init__(self, code: int, depth: int) -> None:
        """Make an empty memory.

        Args:
            code: `MAP` or `LIST`.
            depth: how deep inside other maps and lists the values are, as for the general decoder.
        """
        self.known: dict[bytes, dict[str, object] | list[object] | None] = {}
        self._decode = decode_map_at if code == MAP else decode_list_at
        self._depth = depth

    def check(self, raw: bytes) -> bool:
        """True when the general decoder reads these bytes."""
        try:
            value, end = self._decode(raw, 0, True, self._depth)
        except (DecodeError, IndexError, struct.error):
            return False
        if end != len(raw):
            return False
        self._remember(raw, value)
        return True

    def read(self, raw: bytes) -> dict[str, object] | list[object]:
        """The value of bytes that were checked; the caller may change it."""
        found = self.known.get(raw)
        if found is not None:
            return found.copy()
        value = self._decode(raw, 0, True, self._depth)[0]
        self._remember(raw, value.copy())
        return value

    def _remember(self, raw: bytes, value: dict[str, object] | list[object]) -> None:
        if len(raw) > MAX_NESTED_SIZE:
            return
        if len(self.known) >= MAX_NESTED:
            self.known.clear()
        items = value.values() if isinstance(value, dict) else value
        self.known[raw] = None if any(isinstance(item, dict | list) for item in items) else value


def nested_values(depth: int) -> dict[int, NestedValues]:
    """What reads maps and lists at one depth, by type code."""
    return {code: NestedValues(code, depth) for code in (MAP, LIST)}


def text_or_bytes(raw: bytes) -> str | bytes:
    """Binary as received elsewhere (QMF2.md 3.2): text where it is UTF-8."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw
