"""What another thread than its owner's may do with an engine, while the owner's does nothing: see `qmf/bus/gate.c`.

Each action is one call of a compiled function, which also writes what comes of it to the socket. It does not let the
interpreter go, so that no other thread, and no handler of a signal, sees or leaves an engine that is half changed.
"""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

from qmf.bus.engine.decisions import Decisions
from qmf.bus.engine.deliveries import Deliveries
from qmf.bus.engine.flow_answers import FlowAnswers
from qmf.bus.engine.link import Link
from qmf.bus.engine.link_table import LinkTable
from qmf.bus.engine.native import Fed, Native
from qmf.bus.engine.sent_frames import SentFrames

#: Bytes that another thread has read, and what has come of them; None if they were not fed.
UnreadBytes = tuple[bytes, Fed | None]
#: A connection for the compiled functions; see `lane_t` in `native.c`.
Place = tuple[int, int, int, int, int, list[bytes], list[bytes], list[UnreadBytes]]


class ThreadActions:
    """The actions of one engine."""

    def __init__(
        self,
        native: Native,
        addresses: tuple[int, int],
        sent_frames: SentFrames,
        answers: FlowAnswers,
        events: Sized,
        deliveries: Deliveries,
        decisions: Decisions,
        received: tuple[LinkTable, int, int],
    ) -> None:
        """Prepare the actions of an engine.

        Args:
            native: the compiled functions.
            addresses: those of proton's transport and collector.
            sent_frames, answers, events, deliveries, decisions: parts of the engine.
            received: the table of links, the bytes of the largest message, and the walker of received frames.
        """
        self._native = native
        self._addresses = addresses
        self._sent_frames = sent_frames
        self._answers = answers
        self._events = events
        self._deliveries = deliveries
        self._decisions = decisions
        self._input = (*received, deliveries)

    @property
    def possible(self) -> bool:
        """True if nothing has to be done before. The connection is open, and neither closed nor freed."""
        return not (self._events or self._answers.waits or self._decisions.waiting) and bool(self._sent_frames.walker)

    def place(
        self,
        gate: int,
        descriptor: int,
        unwritten: list[bytes],
        unwalked: list[bytes],
        unread: list[UnreadBytes],
    ) -> Place:
        """What the actions are called with.

        Args:
            gate: address of that of the owner's loop.
            descriptor: of the socket.
            unwritten: gets bytes that the socket does not take. They come before all other output.
            unwalked: the same for bytes that have to pass `walk` first.
            unread: gets what was read and is not simple. It comes before all other input.
        """
        return gate, descriptor, *self._addresses, self._sent_frames.walker, unwritten, unwalked, unread

    def walk(self, data: bytes) -> bytes:
        """What is to be written of bytes that were left in `unwalked`."""
        return self._sent_frames.pass_on(data)

    def send(
        self, place: Place, epoch: int, link: Link, data: bytes, backlog: int, unsettled: dict[int, Any], item: object
    ) -> bool:
        """Send a message.

        Args:
            place: of `place`.
            epoch: of the gate, at which this was `possible`.
            link, data, backlog: as of `Deliveries.send_all`. The link is not detached.
            unsettled: where `item` is noted by the delivery tag.

        Returns:
            False if the epoch is over, or there is no credit: nothing has happened.
        """
        addresses = link.address, link.session_address
        return self._native.send_at_once(
            place, epoch, *addresses, link.sent, data, backlog, self._deliveries, unsettled, item
        )

    def accept(self, place: Place, epoch: int, link: Link, delivery_tags: list[int]) -> bool:
        """Settle messages that were received as accepted.

        Args:
            place, epoch: as of `send`.
            link, delivery_tags: as of `Decisions.accept_all`.

        Returns:
            False if the epoch is over: nothing has happened.
        """
        return self._native.accept_at_once(place, epoch, link.received, delivery_tags)

    def wait_and_read(self, place: Place, signal: int, seconds: float, reading: tuple[object, ...]) -> bool | None:
        """Wait for messages of one link, and take them in.

        Args:
            place: as of `send`.
            signal: descriptor of an epoll, which ends the wait, too.
            seconds: for which to wait.
            reading: what belongs to the link, for `reading.c`: the link; the window of its credit, its messages, the
                condition of those that wait, its session, the receiver and the connection of its deliveries, and how
                those are made.

        Returns:
            whether something may have happened; None, at once, if this cannot be now.
        """
        return self._native.read_at_once(place, signal, seconds, (*self._input, *reading))
