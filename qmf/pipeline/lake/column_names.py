"""Names of columns, made from names on the wire, which may be any text. Pure.

Parquet files, Delta tables and SQL don't take all characters, and most engines take names that differ by case only for
the same. Names that begin with `_` are those of the recorder.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Characters that the names of columns of Delta tables and of fields in paths must not have.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f ,;{}()=.`\"'\\/]")


def safe_names(wires: Sequence[str]) -> list[str]:
    """A name for each name of the wire: the same wherever possible, all different in any case.

    Args:
        wires: names on the wire, in order; those that are good names keep them, whatever others would become.
    """
    names: list[str | None] = [None] * len(wires)
    taken: set[str] = set()
    for good in (True, False):
        for index, wire in enumerate(wires):
            safe = _safe(wire)
            if names[index] is None and (not good or (safe == wire and safe.lower() not in taken)):
                names[index] = take_unused_name(safe, taken)
    return [name for name in names if name is not None]


def take_unused_name(name: str, taken: set[str]) -> str:
    """The name, or a longer one where it is taken; it is taken then.

    Args:
        name: a good one.
        taken: in lower case.
    """
    while name.lower() in taken:
        name += "_"
    taken.add(name.lower())
    return name


def _safe(wire: str) -> str:
    # Text that was not UTF-8 on the wire holds surrogates.
    name = _UNSAFE.sub("_", wire.encode("utf-8", "replace").decode())
    return f"x{name}" if not name or name.startswith("_") else name
