"""Nodes to and from proton's terminus objects. Only the engine uses this."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import proton

from qmf.bus.engine.values import Filter, Terminus

#: What proton's Python side raises for values that nobody sends in good faith: text that is no UTF-8, characters that
#: are none, maps with maps as keys, lists in lists in lists. It decodes late, when we look.
NONSENSE = (proton.ProtonException, ValueError, OverflowError, TypeError, RecursionError)


def read_terminus(terminus: proton.Terminus) -> Terminus | None:
    """What the peer named; None for a null node.

    Raises:
        NONSENSE: the peer sent something that is no node.
    """
    if terminus.type == proton.Terminus.UNSPECIFIED:
        return None
    return Terminus(
        address=terminus.address,
        dynamic=bool(terminus.dynamic),
        filters=tuple(_filters(terminus.filter)),
        browse=terminus.distribution_mode == proton.Terminus.DIST_MODE_COPY,
        coordinator=terminus.type == proton.Terminus.COORDINATOR,
    )


def write_terminus(terminus: proton.Terminus, node: Terminus | None) -> None:
    """Say a node to the peer; None says the null node."""
    if node is None:
        terminus.type = proton.Terminus.UNSPECIFIED
        return
    if node.address is not None:
        terminus.address = node.address
    terminus.dynamic = node.dynamic
    if node.capabilities:
        terminus.capabilities.put_array(False, proton.Data.SYMBOL)
        terminus.capabilities.enter()
        for name in node.capabilities:
            terminus.capabilities.put_symbol(proton.symbol(name))
        terminus.capabilities.exit()
    if node.filters:
        terminus.filter.put_object({proton.symbol(entry.name): _described(entry) for entry in node.filters})


def _described(entry: Filter) -> proton.Described:
    descriptor = entry.descriptor
    value: Any = entry.value
    return proton.Described(
        proton.symbol(descriptor) if isinstance(descriptor, str) else proton.ulong(descriptor), value
    )


def _filters(data: proton.Data) -> Iterator[Filter]:
    data.rewind()
    if data.next() is None:
        return
    entries = data.get_object()
    if entries is None:
        return
    if not isinstance(entries, dict):
        raise ValueError("the filter of a source is not a map")
    for name, value in entries.items():
        if not isinstance(value, proton.Described) or not isinstance(value.descriptor, str | int):
            raise ValueError(f"filter {name!s} is not a described value")
        descriptor = value.descriptor
        yield Filter(
            str(name),
            str(descriptor) if isinstance(descriptor, str) else int(descriptor),
            str(value.value) if isinstance(value.value, str) else value.value,
        )
