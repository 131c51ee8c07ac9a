"""Termini to and from proton's objects. Only the engine uses this module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import proton

from qmf.bus.engine.values import Filter, Terminus

#: What proton's Python objects raise for malformed values: text that is not UTF-8, invalid characters, maps as keys of
#: maps, lists nested too deeply. They decode lazily, when a value is read.
PROTON_DECODE_ERRORS = (proton.ProtonException, ValueError, OverflowError, TypeError, RecursionError)


def read_terminus(terminus: proton.Terminus) -> Terminus | None:
    """The terminus that the peer sent; None for a null terminus.

    Raises:
        PROTON_DECODE_ERRORS: it is malformed.
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


def write_terminus(terminus: proton.Terminus, value: Terminus | None) -> None:
    """Set the terminus that is sent to the peer; None for the null terminus."""
    if value is None:
        terminus.type = proton.Terminus.UNSPECIFIED
        return
    if value.address is not None:
        terminus.address = value.address
    terminus.dynamic = value.dynamic
    if value.capabilities:
        terminus.capabilities.put_array(False, proton.Data.SYMBOL)
        terminus.capabilities.enter()
        for name in value.capabilities:
            terminus.capabilities.put_symbol(proton.symbol(name))
        terminus.capabilities.exit()
    if value.filters:
        terminus.filter.put_object({proton.symbol(entry.name): _described(entry) for entry in value.filters})


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
