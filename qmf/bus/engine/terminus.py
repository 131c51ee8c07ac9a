"""Termini to and from proton's objects. Only the engine uses this module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import proton

from qmf.bus.engine.values import DescribedProperty, Durability, ExpiryPolicy, Filter, Terminus

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
        capabilities=tuple(_symbols(terminus.capabilities)),
        properties=dict(_properties(terminus.properties)),
        durability=Durability(terminus.durability),
        expiry=_EXPIRY_POLICIES[terminus.expiry_policy],
        timeout=terminus.timeout,
    )


def write_terminus(terminus: proton.Terminus, value: Terminus | None) -> None:
    """Set the terminus that is sent to the peer; None for the null terminus."""
    if value is None:
        terminus.type = proton.Terminus.UNSPECIFIED
        return
    if value.coordinator:
        terminus.type = proton.Terminus.COORDINATOR
    if value.address is not None:
        terminus.address = value.address
    terminus.dynamic = value.dynamic
    if value.browse:
        terminus.distribution_mode = proton.Terminus.DIST_MODE_COPY
    terminus.durability = int(value.durability)
    terminus.expiry_policy = _EXPIRY_NUMBERS[value.expiry]
    terminus.timeout = value.timeout
    if value.properties:
        terminus.properties.put_object({proton.symbol(name): _plain(item) for name, item in value.properties.items()})
    if value.capabilities:
        terminus.capabilities.put_array(False, proton.Data.SYMBOL)
        terminus.capabilities.enter()
        for name in value.capabilities:
            terminus.capabilities.put_symbol(proton.symbol(name))
        terminus.capabilities.exit()
    if value.filters:
        terminus.filter.put_object({proton.symbol(entry.name): _to_described(entry) for entry in value.filters})


_EXPIRY_POLICIES = {
    proton.Terminus.EXPIRE_WITH_LINK: ExpiryPolicy.LINK,
    proton.Terminus.EXPIRE_WITH_SESSION: ExpiryPolicy.SESSION,
    proton.Terminus.EXPIRE_WITH_CONNECTION: ExpiryPolicy.CONNECTION,
    proton.Terminus.EXPIRE_NEVER: ExpiryPolicy.NEVER,
}
_EXPIRY_NUMBERS = {policy: number for number, policy in _EXPIRY_POLICIES.items()}


def _object(data: proton.Data) -> Any:
    """The value of a field; None if it is absent."""
    data.rewind()
    return None if data.next() is None else data.get_object()


def _symbols(data: proton.Data) -> Iterator[str]:
    """A field with one symbol, or an array of them."""
    found = _object(data)
    if isinstance(found, str):
        yield str(found)
    elif found is not None:
        yield from (str(name) for name in getattr(found, "elements", found))


#: Lifetime policies by the codes that some peers write in place of the names (AMQP 1.0, part 3.5.10).
_LIFETIME_CODES = {
    0x2B: "amqp:delete-on-close:list",
    0x2C: "amqp:delete-on-no-links:list",
    0x2D: "amqp:delete-on-no-messages:list",
    0x2E: "amqp:delete-on-no-links-or-messages:list",
}


def _properties(data: proton.Data) -> Iterator[tuple[str, object]]:
    found = _object(data)
    if found is None:
        return
    if not isinstance(found, dict):
        raise ValueError("the properties of a terminus are not a map")
    for name, value in found.items():
        if isinstance(value, proton.Described):
            descriptor = value.descriptor
            known = _LIFETIME_CODES.get(descriptor) if isinstance(descriptor, int) else None
            yield str(name), DescribedProperty(known or str(descriptor), value.value)
        else:
            yield str(name), str(value) if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    if not isinstance(value, DescribedProperty):
        return value
    inner: Any = value.value
    return proton.Described(proton.symbol(value.descriptor), inner)


def _to_described(entry: Filter) -> proton.Described:
    descriptor = entry.descriptor
    value: Any = entry.value
    return proton.Described(
        proton.symbol(descriptor) if isinstance(descriptor, str) else proton.ulong(descriptor), value
    )


def _filters(data: proton.Data) -> Iterator[Filter]:
    entries = _object(data)
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
