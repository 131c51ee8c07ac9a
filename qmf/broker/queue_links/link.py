"""What links of both modes have in common: their state, and passing messages on in one unit of the store."""

from __future__ import annotations

import abc
import asyncio
import enum
import time
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.observed_definitions import LinkMode
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.recorder import NotStored, Recorder
from qmf.broker.nodes.router import Node
from qmf.broker.operations.forwarding import QUEUE_LINK
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.queue_links.allowance import Allowance
from qmf.broker.queue_links.definitions import QueueLinkDefinition
from qmf.broker.transactions.transaction import Acquisition, Transaction, TransactionFull

#: Messages that are passed on in one unit of the store.
BATCH = 100

#: Seconds before a link whose target has no room tries again: at first, and at most.
_FIRST_WAIT, _LAST_WAIT = 0.05, 1.0


class NodeLinkState(enum.Enum):
    """State of a link; the values are for people."""

    OPERATIONAL = "Operational"
    WAITING = "Waiting"  #: its target takes nothing now; it tries again
    PAUSED = "Paused"
    COMPLETED = "Completed"  #: it has passed on as many messages as it may
    FAILED = "Failed"  #: it cannot go on


_ENDS = frozenset({NodeLinkState.COMPLETED, NodeLinkState.FAILED})


@attrs.frozen(eq=False)
class LinkPlaces:
    """The nodes of a link, and what it may do there.

    Attributes:
        source: from which it takes messages.
        target: to which it sends them.
        leads_back: says by which way messages for some queues would come back to the source; empty for none.
    """

    source: Queue
    target: Node
    leads_back: Callable[[Sequence[Queue]], str]


class _GoesInCircle(Exception):
    """Messages of a link would come back to its source; says by which way."""


class QueueLink(abc.ABC):
    """A link within the broker from its creation to its deletion; a `NodeLink` for observers.

    Attributes:
        wanted: what was asked for.
        name, durable: of it.
        places: its nodes; None for one that never had them.
        state, reason, since: how it is, why, and since when in seconds since 1970.
        cursor: the last stored message that it has looked at.
        octets, skipped: bytes that it has passed on; messages that it has left, since the broker started.
    """

    kind = QUEUE_LINK  #: see `NodeLink`

    def __init__(
        self,
        definition: QueueLinkDefinition,
        operations: Operations,
        on_changed: Callable[[QueueLink], None],
        *,
        cursor: int = 0,
        passed: int = 0,
    ) -> None:
        """Make a link, which takes messages after `start`.

        Args:
            on_changed: called when its state or its reason is another one.
            cursor, passed: of an earlier run.
        """
        self.wanted = definition
        self.name, self.durable = definition.name, definition.durable
        self.places: LinkPlaces | None = None
        self.state = NodeLinkState.OPERATIONAL
        self.reason = ""
        self.since = time.time()
        self.cursor = cursor
        self.octets = self.skipped = 0
        self._operations = operations
        self._registry = operations.registry
        self._publisher = operations.publisher(definition.principal)
        self._on_changed = on_changed
        self._loop = asyncio.get_running_loop()
        self._allowance = Allowance(definition.max_count, definition.max_rate, self._loop.time, passed)
        self._wait = _FIRST_WAIT
        self._timer: asyncio.TimerHandle | None = None
        self._soon: asyncio.Handle | None = None
        #: A unit of the store is being written.
        self._writing = False
        #: Messages of the next unit: one if the last one found no room.
        self._batch_size = BATCH

    # NodeLink

    @property
    def passed(self) -> int:
        return self._allowance.passed

    @property
    def state_name(self) -> str:
        return self.state.value

    @property
    def fields(self) -> Mapping[str, object]:
        return self.wanted.fields(self.cursor, self.passed)

    # Beginning and end

    @property
    def active(self) -> bool:
        """It takes messages now."""
        return self.state is NodeLinkState.OPERATIONAL

    def start(self, places: LinkPlaces) -> None:
        """Take messages from now on.

        Raises:
            OperationRefused: the policy refuses it.
        """
        self.places = places
        self.check(places)
        if self._allowance.is_used_up:
            self._move(NodeLinkState.COMPLETED)
        else:
            self._begin(places)

    def check(self, places: LinkPlaces) -> None:
        """See whether its creator may do what it does.

        Raises:
            OperationRefused: the policy refuses it.
        """
        principal = self.wanted.principal
        if self.wanted.mode is LinkMode.MOVE:
            self._operations.consume(principal, places.source)
        else:
            self._operations.browse(principal, places.source)
        self._publisher.grant(places.target)

    def pause(self) -> None:
        """Take no messages."""
        if self.state not in _ENDS:
            self._move(NodeLinkState.PAUSED)
            self._stop_timer()

    def resume(self) -> None:
        """Take messages again."""
        if self.state in (NodeLinkState.PAUSED, NodeLinkState.WAITING):
            self._stop_timer()
            self._move(NodeLinkState.OPERATIONAL)
            self._go_on()

    def fail(self, reason: str) -> None:
        """It cannot go on."""
        if self.state is not NodeLinkState.FAILED:
            self._move(NodeLinkState.FAILED, reason)
            self._end()

    def close(self) -> None:
        """It is deleted, or the broker ends."""
        self._stop_timer()
        if self._soon is not None:
            self._soon.cancel()
        if self.places is not None:
            self._end()
            self.places = None

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """A node of the broker was deleted."""
        if self.places is not None and node in (self.places.source, self.places.target):
            self.fail(f"{'queue' if isinstance(node, Queue) else 'exchange'} {node.name!r} was deleted")

    def on_policy_changed(self) -> None:
        """Other rules apply."""
        if self.places is not None and self.state not in _ENDS:
            try:
                self.check(self.places)
            except OperationRefused as error:
                self.fail(str(error))

    # What subclasses do

    @abc.abstractmethod
    def _begin(self, places: LinkPlaces) -> None:
        """Take messages from now on."""

    @abc.abstractmethod
    def _end(self) -> None:
        """Take no messages any more. A second call does nothing."""

    @abc.abstractmethod
    def _go_on(self) -> None:
        """Take what waits: there may be room now."""

    # For subclasses

    def takes(self, message: Message) -> bool:
        """True if it takes a message, by its selector and its size."""
        definition = self.wanted
        if definition.max_size and len(message.data) > definition.max_size:
            return False
        return definition.matches is None or definition.matches(message)

    def _call_soon(self, step: Callable[[], None]) -> None:
        """Call `step` once, when what happens now is done."""
        if self._soon is None:

            def call() -> None:
                self._soon = None
                step()

            self._soon = self._loop.call_soon(call)

    def _call_later(self, wait: float) -> None:
        """Go on after some seconds."""
        if self._timer is None:
            self._timer = self._loop.call_later(wait, self._on_timer)

    def _pass_on(
        self, messages: Sequence[Message], acquisitions: Sequence[Acquisition], on_passed_on: Callable[[str], None]
    ) -> None:
        """Send messages to the target, in one unit of the store with what happens at the source.

        Args:
            acquisitions: what happens at the source.
            on_passed_on: called with nothing when that has happened, or with why it has not: `acquisitions` are rolled
                back then.
        """
        assert self.places is not None
        transaction = Transaction(b"")
        transaction.acquisitions.extend([_Progress(self), *acquisitions])
        try:
            for message in messages:
                publication = self._publisher.admit(self.places.target, message)
                if way := self.places.leads_back(publication.targets()):
                    raise _GoesInCircle(f"its messages come back to queue {self.places.source.name!r} by {way}")
                transaction.sent.append(publication)
        except (OperationRefused, _GoesInCircle) as error:
            transaction.roll_back()
            self.fail(str(error))
            on_passed_on(self.reason)
            return
        size = sum(len(message.data) for message in messages)
        count = len(messages)

        def finish(error: NotStored | None) -> None:
            self._writing = False
            if error is not None:
                self._allowance.passed -= count
                self._stall(f"cannot store: {error.reason}")
                on_passed_on(self.reason)
                return
            self.octets += size
            self._wait, self._batch_size = _FIRST_WAIT, min(2 * self._batch_size, BATCH)
            if self._allowance.is_used_up and self.state not in _ENDS:
                self._move(NodeLinkState.COMPLETED)
                self._end()
            on_passed_on("")

        self._writing = True
        self._allowance.passed += count
        try:
            transaction.commit(self._registry, finish)
        except TransactionFull as error:
            self._writing = False
            self._allowance.passed -= count
            if count > 1:
                self._batch_size = 1
            else:
                self._stall(str(error))
            transaction.roll_back()
            on_passed_on(str(error))

    def has_queue(self, message: Message) -> bool:
        """False if the target is an exchange that would drop a message."""
        assert self.places is not None
        node = self.places.target
        if self._registry.targets(node, message):
            return True
        alternate = node.alternate if isinstance(node, Exchange) else None
        return alternate is not None and bool(self._registry.targets(alternate, message))

    # Details

    def _stall(self, reason: str) -> None:
        """The target takes nothing now."""
        if self.state in (NodeLinkState.OPERATIONAL, NodeLinkState.WAITING):
            self._move(NodeLinkState.WAITING, reason)
            self._call_later(self._wait)
            self._wait = min(2 * self._wait, _LAST_WAIT)

    def _on_timer(self) -> None:
        self._timer = None
        if self.state is NodeLinkState.WAITING:
            self._move(NodeLinkState.OPERATIONAL, self.reason)
        if self.active:
            self._go_on()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _move(self, state: NodeLinkState, reason: str = "") -> None:
        if (state, reason) == (self.state, self.reason):
            return
        tried = {state, self.state} == {NodeLinkState.OPERATIONAL, NodeLinkState.WAITING} and reason == self.reason
        self.state, self.reason = state, reason
        if not tried:  # it waits on
            self.since = time.time()
            self._on_changed(self)

    def record(self) -> None:
        """What it has done so far belongs to the unit of the store that is made now."""
        if self.durable:
            self._registry.observer.on_queue_link_advanced(self)

    def settle(self) -> None:
        """A unit with messages is stored: the target has room."""
        if self.state is NodeLinkState.OPERATIONAL and self.reason:
            self._move(NodeLinkState.OPERATIONAL)


@attrs.frozen(eq=False)
class _Progress:
    """How far a link is, as an `Acquisition`: it is stored with the messages."""

    link: QueueLink

    def record(self, recorder: Recorder) -> None:  # noqa: ARG002  # observers have the store
        self.link.record()

    def commit(self) -> None:
        self.link.settle()

    def roll_back(self) -> None:
        """The next unit stores it again."""


def name_of(node: Node) -> str:
    """A node for people."""
    if isinstance(node, DefaultExchange):
        return "the default exchange"
    return f"{'queue' if isinstance(node, Queue) else 'exchange'} {node.name!r}"
