"""Termini to and from proton's objects. Only the engine uses this module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import proton
from cproton import lib

from qmf.bus.engine.values import DescribedProperty, Durability, ExpiryPolicy, Filter, Terminus

#: What proton's Python objects raise for malformed values: text that is not UTF-8, invalid characters, maps as keys of
#: maps, lists nested too deeply. They decode lazily, when a value is read.
PROTON_DECODE_ERRORS = (proton.ProtonException, ValueError, OverflowError, TypeError, RecursionError)


def read_terminus(terminus: proton.Terminus) -> Terminus | None:
    """The terminus that the peer sent; None for a null terminus.

    Raises:
        PROTON_DECODE_ERRORS: it is malformed.
    """
    # Called on the C object: most fields are absent, and proton's Python objects would be made for each.
    impl = terminus._impl
    kind = lib.pn_terminus_get_type(impl)
    if kind == proton.Terminus.UNSPECIFIED:
        return None
    return Terminus(
        address=terminus.address,
        dynamic=bool(lib.pn_terminus_is_dynamic(impl)),
        filters=tuple(_filters(lib.pn_terminus_filter(impl))),
        browse=lib.pn_terminus_get_distribution_mode(impl) == proton.Terminus.DIST_MODE_COPY,
        coordinator=kind == proton.Terminus.COORDINATOR,
        capabilities=tuple(_symbols(lib.pn_terminus_capabilities(impl))),
        properties=dict(_properties(lib.pn_terminus_properties(impl))),
        durability=Durability(lib.pn_terminus_get_durability(impl)),
        expiry=_EXPIRY_POLICIES[lib.pn_terminus_get_expiry_policy(impl)],
        timeout=lib.pn_terminus_get_timeout(impl),
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
    impl = terminus._impl
    if value.dynamic:
        lib.pn_terminus_set_dynamic(impl, True)
    if value.browse:
        lib.pn_terminus_set_distribution_mode(impl, proton.Terminus.DIST_MODE_COPY)
    if value.durability:
        lib.pn_terminus_set_durability(impl, int(value.durability))
    lib.pn_terminus_set_expiry_policy(impl, _EXPIRY_NUMBERS[value.expiry])
    if value.timeout:
        lib.pn_terminus_set_timeout(impl, value.timeout)
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


def _object(data: Any) -> Any:
    """The value of a field, a C object; None if it is absent."""
    lib.pn_data_rewind(data)
    return proton.Data(data).get_object() if lib.pn_data_next(data) else None


def _symbols(data: Any) -> Iterator[str]:
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


def _properties(data: Any) -> Iterator[tuple[str, object]]:
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


def _filters(data: Any) -> Iterator[Filter]:
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
