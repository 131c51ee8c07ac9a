"""The type codes that objects and events are made of, and the columns of a class."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

import attrs

from qmf.codec.type_codes import (
    AMQP010,
    ARRAY,
    BINARY32,
    BIT,
    LIST,
    MAP,
    TEXT8,
    TEXT16,
    UUID16,
    VOID,
)
from qmf.codec.types import WRAPPERS
from qmf.schema import QmfType

#: `struct` formats of the type codes in keyed objects whose values all have one width; some have no bytes at all.
FIXED_FORMATS: Mapping[int, str] = {
    row.code: row.format for row in AMQP010.values() if row.is_number or row.code in (UUID16, VOID, BIT)
}

#: Bytes of the length in front of values of variable width in keyed objects, by type code.
LENGTHS: Mapping[int, int] = {row.code: row.width for row in AMQP010.values() if row.variable and row.code != ARRAY}

#: Type codes of text, and of maps and lists.
TEXTS, NESTED = (TEXT8, TEXT16), (MAP, LIST)

#: The same for rows (docs/protocol.md).
ROW_FORMATS: Mapping[int, str] = {
    code: format
    for code, format in FIXED_FORMATS.items()
    if code not in (VOID, BIT) and AMQP010[code].name != "datetime"
}
ROW_VARIABLE = frozenset((TEXT16, BINARY32, MAP, LIST))

#: Type code of columns that are encoded by what their values are: references, maps and lists.
ANY = 0

_CODES = {row.python: row.code for row in AMQP010.values() if row.code in ROW_FORMATS}

#: Type codes by the names of schema types whose values all have one width (QMF2.md 6).
FIXED_CODES: Mapping[str, int] = {
    name: _CODES[kind] for name, kind in (*WRAPPERS.items(), ("bool", bool), ("uuid", UUID))
}


@attrs.frozen
class Column:
    """One value of the objects or events of a class.

    Attributes:
        name: its key; at most 255 bytes of UTF-8.
        type: a base type of the schema.
        optional: it may be None, and is left out then.
    """

    name: str
    type: QmfType
    optional: bool = False

    @property
    def code(self) -> int:
        """The type code in keyed objects: one for all values, `TEXT16` for short text as a rule, or `ANY`."""
        return TEXT16 if self.type.is_string else FIXED_CODES.get(self.type.name, ANY)

    @property
    def row_code(self) -> int:
        """The type code in rows."""
        return self.code or (LIST if self.type.name == "list" else MAP)
