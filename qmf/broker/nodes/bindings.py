"""Bindings: which messages of an exchange a queue receives."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.broker.nodes.queues import Queue

#: Arguments of a binding to a direct exchange: it replaces those of other queues with the same key; and to an xml
#: exchange: the query.
EXCLUSIVE_BINDING, XQUERY = "qpid.exclusive-binding", "xquery"


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
    """

    queue: Queue
    spec: BindingSpec
    matched: int = 0


class BindingRefused(Exception):
    """A binding cannot be made; the text says why."""
