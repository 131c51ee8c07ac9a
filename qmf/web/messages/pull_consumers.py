"""Pull consumers: the state of each, its source at the broker, and its end when it is idle.

All is in memory, and nothing of it has to survive: a consumer that is not here is made again from its id
(`consumer_ids`), with numbers that it never had (`pull_protocol`), and the broker has every message that was not
acknowledged. So after the loss of this process the client learns with its next step where it is.
"""

from __future__ import annotations

import asyncio
import collections
import enum
import logging
import time
import uuid
from collections.abc import Callable

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf.errors import QmfError
from qmf.messaging import Message, MessagingError
from qmf.web.messages.broker_links import BrokerLinks, ConsumerSource, Settlement
from qmf.web.messages.consumer_ids import ConsumerOptions, make_id, read_id
from qmf.web.messages.destinations import Destination, DestinationKind
from qmf.web.messages.pull_protocol import ConsumerState, NextStep, PullProtocol, Verdict

log = logging.getLogger("qmf.web")

#: Seconds after which an idle consumer ends, unless it asks for another time.
IDLE_TIMEOUT = 300.0
#: Longest time that a client may ask for, in seconds.
MAX_IDLE_TIMEOUT = 24 * 3600.0
#: Ids of consumers that have ended, to be remembered.
MAX_ENDED = 10_000


class PullOutcome(enum.Enum):
    """What became of a post to a consumer."""

    MESSAGE = "message"
    EMPTY = "empty"
    SETTLED = "settled"
    OUT_OF_STEP = "out of step"


@attrs.frozen
class PullAnswer:
    """The answer to a post.

    Attributes:
        outcome: what became of it.
        next_step: what the client is to do next.
        message: of MESSAGE.
    """

    outcome: PullOutcome
    next_step: NextStep
    message: Message | None = None


class TooManyConsumers(QmfError):
    """The limit on consumers is reached."""


class ConsumerConflict(QmfError):
    """There is a consumer with this name and other options."""


class ConsumerGone(QmfError):
    """The consumer was deleted, or was of a subscription that ended with it."""


class PullConsumer:
    """A consumer of a client. Requests to it are processed one after the other.

    Attributes:
        id: see `consumer_ids`.
        destination: the queue or topic.
        options: that it was created with.
    """

    def __init__(
        self, id: str, destination: Destination, options: ConsumerOptions, links: BrokerLinks, first: int | None
    ) -> None:
        """Make a consumer, which has no receiver yet.

        Args:
            first: number of the first step, of a renewed consumer; None for a new one.
        """
        self.id = id
        self.destination = destination
        self.options = options
        self._links = links
        self._source: ConsumerSource | None = None
        self._lock = asyncio.Lock()
        self._protocol: PullProtocol[Message] = PullProtocol(
            acknowledged=not options.auto_ack, first=1 if first is None else first, renewed=first is not None
        )

    @property
    def closed(self) -> bool:
        """True when it has ended."""
        return self._protocol.state is ConsumerState.CLOSED

    async def open(self) -> None:
        """Open the source; errors as of `BrokerLinks.source`."""
        async with self._lock:
            await self._open_source()

    async def next_step(self) -> NextStep:
        """What the client is to do next; waits for a request that is being processed."""
        async with self._lock:
            await self._notice_losses()
            return self._protocol.next_step

    async def pull(self, number: int, wait: float) -> PullAnswer:
        """The client asks for the next message.

        Args:
            number: of the link.
            wait: seconds to wait for one.

        Raises:
            MessagingError, Timeout: the broker refuses the source.
        """
        async with self._lock:
            await self._notice_losses()
            match self._protocol.pull(number):
                case Verdict.REFUSE:
                    return PullAnswer(PullOutcome.OUT_OF_STEP, self._protocol.next_step)
                case Verdict.REPEAT:
                    return PullAnswer(PullOutcome.MESSAGE, self._protocol.next_step, self._protocol.message)
            message: Message | None = None
            try:
                message = await self._fetch(wait)
            finally:
                if message is None:
                    self._protocol.nothing()
                else:
                    self._protocol.on_fetched(message)
            outcome = PullOutcome.EMPTY if message is None else PullOutcome.MESSAGE
            return PullAnswer(outcome, self._protocol.next_step, message)

    async def _fetch(self, wait: float) -> Message | None:
        deadline = asyncio.get_running_loop().time() + wait
        while True:
            left = max(0.0, deadline - asyncio.get_running_loop().time())
            source = await self._open_source()
            message = await source.fetch(left)
            if message is None or not self.options.auto_ack:
                return message
            # Where it is unknown whether the broker learned of it, the message is delivered, and may come again.
            if await source.accept(message) is not Settlement.LOST:
                return message

    async def acknowledge(self, number: int, *, accept: bool) -> PullAnswer:
        """The client says what became of the message.

        Args:
            number: of the link.
            accept: True: it was processed; False: it is to go back to its node.
        """
        async with self._lock:
            await self._notice_losses()
            match self._protocol.acknowledge(number, accept=accept):
                case Verdict.REFUSE:
                    return PullAnswer(PullOutcome.OUT_OF_STEP, self._protocol.next_step)
                case Verdict.REPEAT:
                    return PullAnswer(PullOutcome.SETTLED, self._protocol.next_step)
            settlement = Settlement.UNKNOWN
            try:
                settlement = await self._settle(accept=accept)
            finally:
                if settlement is Settlement.DONE:
                    self._protocol.on_settled()
                else:
                    self._protocol.on_lost()
            done = settlement is Settlement.DONE
            return PullAnswer(PullOutcome.SETTLED if done else PullOutcome.OUT_OF_STEP, self._protocol.next_step)

    async def _settle(self, *, accept: bool) -> Settlement:
        message, source = self._protocol.message, self._source
        assert message is not None
        if source is None or source.failed:
            return Settlement.LOST
        return await (source.accept(message) if accept else source.release(message))

    async def close(self, *, keep: bool) -> None:
        """End it; a message that is not acknowledged goes back to its node; `keep`: a durable subscription stays."""
        async with self._lock:
            self._protocol.close()
            source, self._source = self._source, None
        if source is not None:
            await source.close(keep=keep)

    def busy(self) -> bool:
        """True while a request is processed."""
        return self._lock.locked()

    async def _open_source(self) -> ConsumerSource:
        if self.closed:
            raise ConsumerGone(f"consumer {self.id} has ended")
        if self._source is not None and self._source.failed:
            failed, self._source = self._source, None
            await failed.close(keep=True)
        if self._source is None:
            self._source = await self._links.source(self.destination, self.options)
        return self._source

    async def _notice_losses(self) -> None:
        """A delivered message whose connection is gone has gone back to its node."""
        if self.closed:
            raise ConsumerGone(f"consumer {self.id} has ended")
        if self._protocol.state is ConsumerState.DELIVERED:
            message = self._protocol.message
            assert message is not None
            if self._source is None or self._source.failed or self._source.is_lost(message):
                self._protocol.on_lost()


class PullConsumers:
    """All pull consumers of a server."""

    def __init__(self, links: BrokerLinks, *, limit: int, clock: Callable[[], int] = time.time_ns) -> None:
        """Begin without consumers.

        Args:
            limit: consumers at a time.
            clock: nanoseconds since 1970, for numbers that are never used again.
        """
        self._links = links
        self._limit = limit
        self._clock = clock
        self._last_number = 0
        self._consumers: dict[tuple[Destination, str], PullConsumer] = {}
        #: Consumers that are not made again from their ids, with the reason.
        self._ended: collections.OrderedDict[tuple[Destination, str], str] = collections.OrderedDict()
        self._timers: dict[PullConsumer, asyncio.TimerHandle] = {}
        self._tasks = BackgroundTasks()

    def __len__(self) -> int:
        return len(self._consumers)

    async def create(self, destination: Destination, options: ConsumerOptions) -> PullConsumer:
        """A new consumer; with a name that is in use, the one that there is.

        Raises:
            OptionsTooLong: for an id.
            ConsumerConflict: there is one with that name, and it has other options.
            TooManyConsumers: the limit is reached.
            MessagingError, Timeout: the broker refuses.
        """
        renewed = options.name is not None
        if options.durable and options.name is None:
            options = attrs.evolve(options, name=f"generated-{uuid.uuid4().hex}")
        elif options.name is not None:
            found = self._find_named(destination, options.name)
            if found is not None:
                if found.options != options:
                    raise ConsumerConflict(_difference(found, options))
                return found
        id = make_id(destination.path, options)
        self._ended.pop((destination, id), None)
        # Links of an earlier life may exist of one with a name.
        return await self._add(id, destination, options, self._new_number() if renewed else None)

    def _find_named(self, destination: Destination, name: str) -> PullConsumer | None:
        found = (item for (where, _), item in self._consumers.items() if where == destination)
        return next((item for item in found if item.options.name == name), None)

    async def find(self, destination: Destination, id: str, *, auto_ack: bool) -> PullConsumer | None:
        """The consumer with that id, made again if it is not here; None if there can't be one.

        Raises:
            ConsumerGone: it was deleted or idle for too long, or its messages ended with it.
            TooManyConsumers: the limit is reached.
            MessagingError, Timeout: the broker refuses.
        """
        found = self._consumers.get((destination, id))
        if found is not None:
            return found if found.options.auto_ack is auto_ack else None
        options = read_id(destination.path, id, auto_ack=auto_ack)
        if options is None:
            return None
        if (reason := self._ended.get((destination, id))) is not None:
            raise ConsumerGone(reason)
        if destination.kind is DestinationKind.TOPIC and not options.durable:
            raise ConsumerGone("the subscription was not durable, and ended with its consumer or with the server")
        return await self._add(id, destination, options, self._new_number())

    async def _add(
        self, id: str, destination: Destination, options: ConsumerOptions, first: int | None
    ) -> PullConsumer:
        if len(self._consumers) >= self._limit:
            raise TooManyConsumers(f"there are {self._limit} consumers, which is the limit")
        consumer = PullConsumer(id, destination, options, self._links, first)
        key = destination, id
        self._consumers[key] = consumer
        try:
            await consumer.open()
        except BaseException:
            self._consumers.pop(key, None)
            await consumer.close(keep=True)
            raise
        self.on_used(consumer)
        return consumer

    def _new_number(self) -> int:
        """A number above all that any consumer ever had: consumers take far less than one in a microsecond."""
        self._last_number = max(self._clock() // 1000, self._last_number + 1)
        return self._last_number

    def on_used(self, consumer: PullConsumer) -> None:
        """A request to a consumer was processed: its idle time begins."""
        if (timer := self._timers.pop(consumer, None)) is not None:
            timer.cancel()
        if not consumer.closed:
            idle = consumer.options.idle_timeout
            delay = IDLE_TIMEOUT if idle is None else min(idle / 1000, MAX_IDLE_TIMEOUT)
            self._timers[consumer] = asyncio.get_running_loop().call_later(delay, self._expire, consumer)

    def _expire(self, consumer: PullConsumer) -> None:
        self._timers.pop(consumer, None)
        if consumer.busy():
            self.on_used(consumer)
            return
        log.info("consumer %s of %s was idle, and is closed", consumer.id, consumer.destination)
        keep = not consumer.options.delete_when_idle
        if not (keep and consumer.options.durable):
            self._remember(consumer, "the consumer has ended, since it was idle for too long")
        self._tasks.spawn(self._end(consumer, keep=keep))

    async def delete(self, consumer: PullConsumer) -> None:
        """End a consumer; a topic's subscription ends with it."""
        self._remember(consumer, "the consumer was deleted")
        await self._end(consumer, keep=False)

    def _remember(self, consumer: PullConsumer, reason: str) -> None:
        self._ended[consumer.destination, consumer.id] = reason
        while len(self._ended) > MAX_ENDED:
            self._ended.popitem(last=False)

    async def _end(self, consumer: PullConsumer, *, keep: bool) -> None:
        self._consumers.pop((consumer.destination, consumer.id), None)
        if (timer := self._timers.pop(consumer, None)) is not None:
            timer.cancel()
        try:
            await consumer.close(keep=keep)
        except MessagingError as error:
            log.warning("closing consumer %s of %s: %s", consumer.id, consumer.destination, error)

    async def close(self) -> None:
        """End all consumers; durable subscriptions stay."""
        for consumer in list(self._consumers.values()):
            self._tasks.spawn(self._end(consumer, keep=True))
        await self._tasks.wait()


def _difference(found: PullConsumer, options: ConsumerOptions) -> str:
    names = [item.name for item in attrs.fields(ConsumerOptions)]
    other = [name for name in names if getattr(found.options, name) != getattr(options, name)]
    return f"subscription {options.name!r} has other options: {', '.join(other)}; delete it first"
