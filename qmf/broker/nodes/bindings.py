"""Bindings: which messages of an exchange a queue receives; and what brokers ask each other for in their arguments."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.broker.nodes.queues import Queue

#: Arguments of a binding to a direct exchange: it replaces those of other queues with the same key; and to an xml
#: exchange: the query.
EXCLUSIVE_BINDING, XQUERY = "qpid.exclusive-binding", "xquery"

#: Beginning of the arguments by which brokers ask each other for bindings, which match no message.
PEER_ARGUMENTS = "qpid.fed."
#: What is asked for; the ids of the brokers through which it has come, with commas between them; where it began.
PEER_OPERATION, PEER_TAGS, PEER_ORIGIN = "qpid.fed.op", "qpid.fed.tags", "qpid.fed.origin"


@attrs.frozen
class BindingSpec:
    """Which messages of an exchange a queue receives.

    Attributes:
        key: binding key, used by direct, topic and xml exchanges; identifies the binding among those of a queue to an
            exchange.
        headers: the arguments. For headers exchanges the required application properties; None as value accepts any
            value. ``x-match`` is ``all`` (the default) or ``any``; other names that start with ``x-`` are ignored.
    """

    key: str = ""
    headers: Mapping[str, object] = attrs.field(factory=dict)


@attrs.define(eq=False)
class Binding:
    """A binding of a queue to an exchange. Compared by identity.

    Attributes:
        queue: that receives the messages.
        spec: which messages.
        matched: number of messages that it routed.
        origins: for a binding that another broker's dynamic route has asked for: the brokers where somebody has bound
            this key, each with the ids of those through which that is known here, beginning with itself. None for
            all other bindings.
    """

    queue: Queue
    spec: BindingSpec
    matched: int = 0
    origins: dict[str, tuple[str, ...]] | None = None


class BindingRefused(Exception):
    """A binding cannot be made; the text says why."""


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
