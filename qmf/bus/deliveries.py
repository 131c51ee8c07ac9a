"""Messages of an engine: parts joined, limits kept, outcomes told. Part of `engine.py`, which owns the links."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import proton

from qmf.bus.link import Link
from qmf.bus.values import EngineEvent, Incoming, Outcome, Settled

_OUTCOMES: dict[int, Outcome] = {
    proton.Delivery.ACCEPTED: Outcome.ACCEPTED,
    proton.Delivery.REJECTED: Outcome.REJECTED,
    proton.Delivery.RELEASED: Outcome.RELEASED,
    proton.Delivery.MODIFIED: Outcome.MODIFIED,
}
_STATES = {outcome: state for state, outcome in _OUTCOMES.items()}


class Deliveries:
    """What happens to messages on the links of one engine."""

    def __init__(
        self, limit: int, emit: Callable[[EngineEvent], None], detach: Callable[[Link, str, str], None]
    ) -> None:
        """Args:

        limit: largest message that is taken, in bytes.
        emit: takes the events.
        detach: ends a link that breaks the limit.
        """
        self._limit = limit
        self._emit = emit
        self._detach = detach
        self._tokens = itertools.count(1)

    def send(self, link: Link, data: bytes, *, settled: bool) -> int:
        """See `Engine.send`."""
        raw = link.raw
        assert isinstance(raw, proton.Sender)
        token = next(self._tokens)
        delivery = raw.delivery(str(token))
        raw.stream(data)
        raw.advance()
        if settled or link.settled:
            delivery.settle()
        else:
            link.deliveries[token] = delivery
        return token

    def settle(self, link: Link, token: int, outcome: Outcome, condition: str, description: str) -> None:
        """See `Engine.settle`."""
        delivery = link.deliveries.pop(token, None)
        if delivery is not None:
            _finish(delivery, outcome, condition, description)

    def changed(self, link: Link | None, raw: proton.Link, delivery: proton.Delivery) -> None:
        """proton says that something happened to a delivery; `link` is None when the link was given up."""
        if link is None or link.closing:
            # Nobody waits for it any more. Without a state the peer would take a message for accepted.
            if raw.is_receiver and not delivery.local_state:
                delivery.update(proton.Delivery.RELEASED)
            delivery.settle()
        elif link.sending:
            self._decided(link, delivery)
        elif isinstance(raw, proton.Receiver):
            self._arrived(link, raw, delivery)

    def _decided(self, link: Link, delivery: proton.Delivery) -> None:
        if not delivery.updated:
            return
        outcome = _OUTCOMES.get(delivery.remote_state)
        if outcome is None and not delivery.settled:
            return
        token = int(delivery.tag)
        if link.deliveries.pop(token, None) is None:
            return
        condition = delivery.remote.condition if outcome is Outcome.REJECTED else None
        words = (condition.name, condition.description or "") if condition else ("", "")
        # Settled without a state: the peer has it and does not say more.
        self._emit(Settled(link, token, outcome or Outcome.ACCEPTED, *words))
        delivery.settle()

    def _arrived(self, link: Link, raw: proton.Receiver, delivery: proton.Delivery) -> None:
        if delivery.aborted:
            link.chunks.clear()
            link.size = 0
            delivery.settle()
            raw.flow(1)
            return
        if not delivery.readable or raw.current != delivery:
            return
        if (size := delivery.pending) and (part := raw.recv(size)):
            link.chunks.append(bytes(part))
            link.size += len(part)
        if link.size > self._limit:
            words = ("amqp:link:message-size-exceeded", f"messages may have {self._limit} bytes, this one has more")
            _finish(delivery, Outcome.REJECTED, *words)
            self._detach(link, *words)
        elif not delivery.partial:
            raw.advance()
            self._complete(link, delivery)

    def _complete(self, link: Link, delivery: proton.Delivery) -> None:
        data = link.chunks[0] if len(link.chunks) == 1 else b"".join(link.chunks)
        link.chunks.clear()
        link.size = 0
        token: int | None = None
        if delivery.settled:
            delivery.settle()
        else:
            token = next(self._tokens)
            link.deliveries[token] = delivery
        self._emit(Incoming(link, token, data))


def _finish(delivery: proton.Delivery, outcome: Outcome, condition: str, description: str) -> None:
    if condition:
        delivery.local.condition = proton.Condition(condition, description)
    delivery.update(_STATES[outcome])
    delivery.settle()
