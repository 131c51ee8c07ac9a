"""The types of QMF schemas, as data (QMF2.md 6; "Data Types" in the QMF manual).

The *style* of a type determines how a program sets a value, and how many values it has on the wire:

=========  ==========================================  ================================
style      accessor                                    values on the wire
=========  ==========================================  ================================
DIRECT     assignment                                  ``x``
COUNT      ``inc``, ``dec``, ``set``                   ``x``
HILO       ``inc``, ``dec``, ``set``                   ``x``, ``xHigh``, ``xLow``
MMA        ``sample``                                  ``xCount``, ``xMin``, ``xMax``, ``xAvg``
=========  ==========================================  ================================
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

import attrs


class Style(enum.Enum):
    """How a value is set, and how many wire values it has."""

    DIRECT = "direct"
    COUNT = "count"
    HILO = "hilo"
    MMA = "mma"


@attrs.frozen
class QmfType:
    """One type of the schema language.

    Attributes:
        name: as written in XML, e.g. ``hilo32``.
        style: how it is set.
        base: name of the DIRECT type that each of its wire values has, e.g. ``uint32``.
        code: number of the base type in QMFv1 (QMF2.md 6).
        minimum: smallest value of integer types, else None.
        maximum: largest value of integer types, else None.
        max_bytes: longest UTF-8 encoding of string types, else None.
        v2: its ``TYPE_*`` constant in QMFv2 schema answers (QMF2.md 5.3).
        subtype: its ``_subtype`` in QMFv2 schema answers, or None.
        python: the Python type of one value, as written in generated code.
    """

    name: str
    style: Style
    base: str
    code: int
    minimum: int | None
    maximum: int | None
    max_bytes: int | None
    v2: str
    subtype: str | None
    python: str

    @property
    def is_integer(self) -> bool:
        """True for every type whose values are whole numbers, times included."""
        return self.minimum is not None

    @property
    def is_string(self) -> bool:
        """True for `sstr` and `lstr`."""
        return self.max_bytes is not None


def _integer(name: str, code: int, bits: int, signed: bool, base: str, style: Style, subtype: str | None) -> QmfType:
    low = -(1 << (bits - 1)) if signed else 0
    high = (1 << (bits - 1)) - 1 if signed else (1 << bits) - 1
    return QmfType(name, style, base, code, low, high, None, "TYPE_INT", subtype, "int")


def _plain(
    name: str, code: int, v2: str, python: str, *, max_bytes: int | None = None, subtype: str | None = None
) -> QmfType:
    return QmfType(name, Style.DIRECT, name, code, None, None, max_bytes, v2, subtype, python)


def _build() -> dict[str, QmfType]:
    direct = Style.DIRECT
    types = [
        _plain("objId", 10, "TYPE_MAP", "ObjectId", subtype="reference"),
        *(_integer(f"uint{b}", c, b, False, f"uint{b}", direct, None) for b, c in ((8, 1), (16, 2), (32, 3), (64, 4))),
        *(_integer(f"int{b}", c, b, True, f"int{b}", direct, None) for b, c in ((8, 16), (16, 17), (32, 18), (64, 19))),
        _plain("bool", 11, "TYPE_BOOL", "bool"),
        _plain("sstr", 6, "TYPE_STRING", "str", max_bytes=255),
        _plain("lstr", 7, "TYPE_STRING", "str", max_bytes=65535),
        _integer("absTime", 8, 64, True, "absTime", direct, "abstime"),
        _integer("deltaTime", 9, 64, False, "deltaTime", direct, "deltatime"),
        _plain("float", 12, "TYPE_FLOAT", "float"),
        _plain("double", 13, "TYPE_FLOAT", "float"),
        _plain("uuid", 14, "TYPE_UUID", "UUID"),
        _plain("map", 15, "TYPE_MAP", "Mapping[str, object]"),
        _plain("list", 21, "TYPE_LIST", "Sequence[object]"),
    ]
    for bits, code in ((8, 1), (16, 2), (32, 3), (64, 4)):
        types.append(_integer(f"hilo{bits}", code, bits, False, f"uint{bits}", Style.HILO, None))
        types.append(_integer(f"count{bits}", code, bits, False, f"uint{bits}", Style.COUNT, None))
    types.append(_integer("mma32", 3, 32, False, "uint32", Style.MMA, None))
    types.append(_integer("mma64", 4, 64, False, "uint64", Style.MMA, None))
    types.append(_integer("mmaTime", 9, 64, False, "deltaTime", Style.MMA, "deltatime"))
    return {item.name: item for item in types}


#: Every type by its XML name.
TYPES: Mapping[str, QmfType] = MappingProxyType(_build())

#: DIRECT types by their QMFv1 code: the types of schemas received by QMFv1.
TYPES_BY_CODE: Mapping[int, QmfType] = MappingProxyType(
    {item.code: item for item in TYPES.values() if item.style is Style.DIRECT}
)
