"""Links within a broker as they are asked for: values, read from the properties that consoles give. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.broker.nodes.arguments import Arguments, NodeArgumentError
from qmf.broker.nodes.observed_definitions import LinkMode, NodeLinkProperties
from qmf.broker.nodes.selectors import Selector, SelectorError, compile_selector
from qmf.broker.nodes.start_positions import StartError, StartKind, StartPosition, read_start
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.principal import Principal, split_stored

#: Fields of a link in the store, besides its properties and its creator: the last stored message that it has looked at,
#: and the messages that it has passed on.
_CURSOR, _PASSED = "qmf.cursor", "qmf.passed"


@attrs.frozen(eq=False)
class QueueLinkDefinition(NodeLinkProperties):
    """A link within a broker.

    Attributes:
        name: of the link.
        matches: as the selector; None for all.
        start: at which message it begins.
        durable: it is there again after a restart.
        principal: on whose behalf it takes and sends messages.
        properties: as given.
    """

    name: str
    matches: Selector | None
    start: StartPosition
    durable: bool
    principal: Principal
    properties: Mapping[str, object]

    def fields(self, cursor: int, passed: int) -> dict[str, object]:
        """What the store keeps of it: `read_stored_queue_link` reads it."""
        return {**self.properties, **self.principal.fields, _CURSOR: cursor, _PASSED: passed}


def read_queue_link(
    name: str, properties: Mapping[str, object], principal: Principal, *, strict: bool = False
) -> QueueLinkDefinition:
    """A link from its properties.

    Args:
        properties: ``source``, ``target``, ``mode``, ``selector``, ``start``, ``max_count``, ``max_size``,
            ``max_rate``, ``durable``.
        strict: refuse other properties.

    Raises:
        ForwardingError: a property is missing or wrong.
    """
    arguments = Arguments(properties)
    try:
        source, target, selector = (arguments.text(key) for key in ("source", "target", "selector"))
        mode = arguments.choice("mode", {mode.value: mode for mode in LinkMode}, LinkMode.MOVE)
        max_count, max_size = (arguments.number(key) or 0 for key in ("max_count", "max_size"))
        max_rate = arguments.number("max_rate", most=(1 << 32) - 1) or 0
        durable = arguments.boolean("durable")
        start, matches = _choice(mode, arguments.pop("start"), selector)
    except NodeArgumentError as error:
        raise ForwardingError(f"invalid-argument: {error}") from error
    for what, address in (("source", source), ("target", target)):
        if not address:
            raise ForwardingError(f"invalid-argument: {what}: is missing")
    if strict and arguments.unknown:
        raise ForwardingError(f"invalid-argument: {', '.join(arguments.unknown)}: unknown")
    return QueueLinkDefinition(
        source,
        target,
        mode,
        selector,
        max_count,
        max_size,
        max_rate,
        principal.user,
        name,
        matches,
        start,
        durable,
        principal.lasting,
        {str(key): value for key, value in properties.items()},
    )


def _choice(mode: LinkMode, start: object, selector: str) -> tuple[StartPosition, Selector | None]:
    """Where a link begins, and which messages it takes."""
    try:
        position = StartPosition(_USUAL_START[mode]) if start is None else read_start(start)
        return position, compile_selector(selector) if selector else None
    except StartError as error:
        raise ForwardingError(f"invalid-argument: start: {error}") from error
    except SelectorError as error:
        raise ForwardingError(f"invalid-argument: selector: {error}") from error


#: Where links begin that do not say it: those that move take what waits, those that copy take what comes.
_USUAL_START = {LinkMode.MOVE: StartKind.HEAD, LinkMode.COPY: StartKind.TAIL}


@attrs.frozen
class StoredQueueLink:
    """A link as the store has it.

    Attributes:
        definition: what was asked for.
        cursor: the last stored message that it has looked at; 0 for none.
        passed: messages that it has passed on.
    """

    definition: QueueLinkDefinition
    cursor: int
    passed: int


def read_stored_queue_link(name: str, fields: Mapping[str, object]) -> StoredQueueLink:
    """A link as the store has it (`QueueLinkDefinition.fields`).

    Raises:
        ForwardingError: a field is missing or wrong.
    """
    properties, principal = split_stored(fields)
    cursor, passed = properties.pop(_CURSOR, 0), properties.pop(_PASSED, 0)
    if not isinstance(cursor, int) or not isinstance(passed, int):
        raise ForwardingError("its place in the queue is no number")
    return StoredQueueLink(read_queue_link(name, properties, principal), cursor, passed)
