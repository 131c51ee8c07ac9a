"""Properties of connections and links, and errors, to and from proton's objects. Only the engine uses this module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import proton

from qmf.bus.engine.resumption import LINK_RESUMPTION, Resumption, write_resumption


def write_properties(raw: proton.Link, properties: Mapping[str, object], resumption: Resumption | None) -> None:
    """Set the properties of a link that is to be attached."""
    values: dict[Any, Any] = {proton.symbol(key): value for key, value in properties.items()}
    if resumption is not None:
        values[proton.symbol(LINK_RESUMPTION)] = write_resumption(resumption)
    if values:
        raw.properties = values


def text_keys(properties: object) -> Mapping[str, object]:
    """A map of a peer with its keys as text; empty for anything else."""
    return {str(name): value for name, value in properties.items()} if isinstance(properties, dict) else {}


def error_of(endpoint: proton.Connection | proton.Session | proton.Link) -> tuple[str, str]:
    """Condition and description of the peer's error; empty when it gave none."""
    condition = endpoint.remote_condition
    return (condition.name, condition.description or "") if condition else ("", "")
