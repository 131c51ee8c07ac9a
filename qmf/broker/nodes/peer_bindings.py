"""What brokers ask each other for with the arguments of a binding, when dynamic routes are between them."""

from __future__ import annotations

from collections.abc import Mapping

from qmf.broker.nodes.bindings import PEER_ORIGIN, PEER_TAGS, Binding, BindingSpec

#: A binding, its end, that all bindings are passed on again (twice, in qpidd's words).
BIND, UNBIND, REORIGIN, HELLO = "B", "U", "R", "H"


def peer_path(spec: BindingSpec) -> tuple[str, tuple[str, ...]]:
    """Where a binding began that another broker asks for, and the ids of the brokers through which it has come."""
    tags = tuple(str(spec.headers.get(PEER_TAGS, "")).replace(",", " ").split())
    return str(spec.headers.get(PEER_ORIGIN, "") or (tags[0] if tags else "")), tags


def origins_of(binding: Binding) -> dict[str, tuple[str, ...]] | None:
    """Where a binding began, with the path from there (`Binding.origins`); None for one of this broker's clients."""
    if binding.origins is None and PEER_ORIGIN in binding.spec.headers:  # it is from the store
        origin, tags = peer_path(binding.spec)
        binding.origins = {origin: tags}
    return binding.origins


def add_origin(binding: Binding, spec: BindingSpec) -> bool:
    """Another broker asks for a binding that exists; False if nothing changes by that."""
    origins = origins_of(binding)
    origin, path = peer_path(spec)
    if origins is None or origins.get(origin) == path:
        return False
    origins[origin] = path
    return True


def remove_origin(binding: Binding, spec: BindingSpec) -> Mapping[str, tuple[str, ...]]:
    """Another broker does not need a binding any more; the origins that still do."""
    origins = origins_of(binding) or {}
    origins.pop(peer_path(spec)[0], None)
    return origins
