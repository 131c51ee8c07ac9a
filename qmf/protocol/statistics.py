"""Finding statistics again in lists of wire values (QMF2.md 6).

On the wire a statistic is one value or a few: a hilo is `x`, `xHigh`, `xLow`. QMFv1 schemas list those values, but
not which of them belong together: names, types and descriptions show that.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf.schema.model import Statistic
from qmf.schema.types import TYPES, QmfType, Style

# Type of a statistic by its style and the QMFv1 code of its values.
_FOLDED: dict[tuple[Style, int], QmfType] = {
    (item.style, item.code): item for item in TYPES.values() if item.style in (Style.HILO, Style.MMA)
}

# Suffix of the first value's name in QMFv1, by style: what is before it is the statistic's name.
_FIRST = {Style.HILO: "", Style.MMA: "Samples"}


def fold_v1(entries: Sequence[Statistic]) -> tuple[Statistic, ...]:
    """Join the values of a QMFv1 schema that make up one statistic.

    Args:
        entries: one statistic of a direct type per value, in wire order, under its QMFv1 name.

    Returns:
        the statistics; values that belong to none stay alone. Counters stay plain integers, since they look like those.
    """
    out: list[Statistic] = []
    index = 0
    while index < len(entries):
        found = next((item for style in _FIRST if (item := _fold(entries, index, style)) is not None), None)
        statistic = found or entries[index]
        out.append(statistic)
        index += len(statistic.entries)
    return tuple(out)


def _fold(entries: Sequence[Statistic], index: int, style: Style) -> Statistic | None:
    """The statistic of `style` whose first value is at `index`, or None."""
    first = entries[index]
    suffix = _FIRST[style]
    type = _FOLDED.get((style, first.type.code))
    if type is None or not first.name.endswith(suffix) or first.name == suffix:
        return None
    name = first.name.removesuffix(suffix)
    candidate = attrs.evolve(first, name=name, type=type)
    expected = candidate.entries
    desc = None if first.desc is None else first.desc.removesuffix(expected[0].v1_suffix)
    run = entries[index : index + len(expected)]
    wanted = [(item.v1_name, first.type, with_suffix(desc, item.v1_suffix)) for item in expected]
    if [(item.name, item.type, item.desc) for item in run] != wanted:
        return None
    return attrs.evolve(candidate, desc=desc)


def with_suffix(desc: str | None, suffix: str) -> str | None:
    """The description of one value of a statistic; a statistic without description has none for its values either."""
    return None if desc is None else desc + suffix
