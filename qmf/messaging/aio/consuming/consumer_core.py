"""What is behind a consumer, in both forms: fetches messages, calls the handler, settles them by what it does."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import attrs

from qmf.messaging.addresses import Address
from qmf.messaging.addresses.options import Mode
from qmf.messaging.aio.consuming.copies import dead_letter, delayed_copy, deliveries_before, failed_attempts
from qmf.messaging.aio.consuming.handler_threads import HandlerThreads
from qmf.messaging.aio.consuming.policy import Failure, Fate, RejectMessage, Retry, RetryLater, TooManyDeliveries
from qmf.messaging.aio.message import ReceivedMessage
from qmf.messaging.aio.receiver import Receiver
from qmf.messaging.aio.sender import Sender
from qmf.messaging.aio.session import Session
from qmf.messaging.content_types import ContentReader
from qmf.messaging.core.connection_core import ConnectionCore
from qmf.messaging.exceptions import DecodeError, InvalidOption, MessagingError
from qmf.messaging.message import Message, set_attributes
from qmf.messaging.resolution import declares_durable_queues, delays_delivery

log = logging.getLogger("qmf.messaging")

Handler = Callable[[Message[Any]], Awaitable[object] | object]


@attrs.frozen
class HandlingOptions:
    """See `qmf.messaging.aio.Consumer`."""

    content: object = None
    concurrency: int = attrs.field(default=1, validator=attrs.validators.ge(1))
    capacity: int | None = attrs.field(default=None)
    retry: Retry = attrs.field(factory=Retry)
    dead_letters: str | None = None
    grace: float | None = None
    max_held: int = attrs.field(default=500, validator=attrs.validators.ge(1))
    max_deliveries: int | None = attrs.field(default=None, validator=attrs.validators.optional(attrs.validators.ge(1)))
    on_failure: Callable[[Failure], object] | None = None


class ConsumerCore:
    """A consumer, which runs once at a time. Methods are called on the loop's thread."""

    def __init__(self, connection: ConnectionCore, source: str, handler: Handler, options: HandlingOptions) -> None:
        """Make a consumer that does not run.

        Args:
            connection: opened by `run`, unless it is open.
            source: the address.
            handler: called for each message.
            options: see there.

        Raises:
            MalformedAddress, InvalidOption: an address is none, or the source would be browsed.
            ContentError: there is no content type for the class of the content.
        """
        self._connection = connection
        self._source = Address(source)
        if self._source.options.mode is Mode.BROWSE:
            raise InvalidOption(text=f"address {source!r}: a consumer takes messages, mode: browse leaves them")
        if options.dead_letters is not None:
            Address(options.dead_letters)
        self._handler = handler
        self._options = options
        self._reader = ContentReader(connection.content_types, options.content)
        self._dispatcher: asyncio.Task[None] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        #: Those of them that wait for the time of another attempt.
        self._held: set[asyncio.Task[None]] = set()
        self._stopping = self._hurried = False

    # Running

    async def run(self) -> None:
        """See `Consumer.run`."""
        if self._dispatcher is not None:
            raise MessagingError(text="the consumer runs already")
        self._stopping = self._hurried = False
        if not self._connection.opened:
            await self._connection.open(None)
        session = Session(await self._connection.session(None, False, None))
        threads = HandlerThreads(self._options.concurrency)
        try:
            await self._open(session, threads)
            dispatcher = self._dispatcher = asyncio.get_running_loop().create_task(self._dispatch())
            if self._stopping:  # meanwhile
                dispatcher.cancel()
            await asyncio.wait({dispatcher})
            await self._finish()
            if not dispatcher.cancelled():
                dispatcher.result()
        except asyncio.CancelledError:
            self._hurry()
            await self._finish()
            raise
        finally:
            self._dispatcher = None
            threads.stop()
            await self._close(session)

    async def _open(self, session: Session, threads: HandlerThreads) -> None:
        options, core = self._options, session._core
        capacity = options.concurrency if options.capacity is None else options.capacity
        self._session, self._threads = session, threads
        self._slots = asyncio.Semaphore(options.concurrency)
        self._room = asyncio.Event()
        self._room.set()
        link = await core.open_receiver(self._source, capacity, None, ReceivedMessage, decoded=False)
        self._receiver = Receiver(link)
        product = "" if core.network is None else core.network.peer.product
        self._dead: Sender | None = None
        if (dead := options.dead_letters) is not None:
            durable = ", node: {type: queue, durable: True}" if declares_durable_queues(product) else ""
            self._dead = await session.sender(dead if ";" in dead else f"{dead}; {{create: always{durable}}}")
        self._later: Sender | None = None
        if delays_delivery(product) and link.is_queue:
            self._later = await session.sender(self._source.name)

    async def _close(self, session: Session) -> None:
        try:
            await session.close()
        except MessagingError as error:
            log.warning("the session of the consumer of %r was not closed in good order: %s", self._source.name, error)

    def stop(self) -> None:
        """Fetch no more messages, and end when the handlers have; at the second call, at once."""
        if self._stopping:
            self._hurry()
        self._stopping = True
        if self._dispatcher is not None:
            self._dispatcher.cancel()

    def _hurry(self) -> None:
        self._hurried = True
        if self._dispatcher is not None:
            self._dispatcher.cancel()
        for task in self._tasks:
            task.cancel()

    async def _finish(self) -> None:
        """Wait for the handlers; held messages return to their queue."""
        for task in self._held:
            task.cancel()
        if self._tasks and not self._hurried:
            await asyncio.wait(self._tasks, timeout=self._options.grace)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # Messages

    async def _dispatch(self) -> None:
        while True:
            await self._room.wait()
            message = await self._receiver.fetch()
            try:
                await self._slots.acquire()
            except asyncio.CancelledError:
                await self._settle(message.release, message)
                raise
            self._start(self._process(message, failed_attempts(message) + 1))

    def _start(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _process(self, message: ReceivedMessage, attempt: int) -> None:
        """Handle a message, with a slot, which is free afterwards."""
        given: ReceivedMessage = ReceivedMessage.__new__(ReceivedMessage)
        set_attributes(given, {**vars(message), "properties": dict(message.properties)})
        try:
            self._check_deliveries(message)
            self._reader.apply(given)
            await self._call(given)
        except asyncio.CancelledError as error:
            self._report(Failure(given, error, attempt, Fate.RETURNED))
            await self._settle(message.modify, message)
        except (Exception, SystemExit, KeyboardInterrupt) as error:  # noqa: BLE001 - reported; no handler ends a consumer
            await self._fail(message, given, attempt, error)
        else:
            await self._settle(message.accept, message)
        finally:
            self._slots.release()

    def _check_deliveries(self, message: Message) -> None:
        """Give a message up that the broker has delivered too often."""
        most, deliveries = self._options.max_deliveries, deliveries_before(message)
        if most is not None and deliveries >= most:
            raise TooManyDeliveries(text="too many deliveries without an outcome", deliveries=deliveries)

    async def _call(self, message: Message) -> None:
        handler = self._handler
        if inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(getattr(handler, "__call__", None)):  # noqa: B004
            result = handler(message)
        else:
            result = await self._threads.call(lambda: handler(message))
        if inspect.isawaitable(result):
            await result

    async def _fail(self, message: ReceivedMessage, given: Message, attempt: int, error: BaseException) -> None:
        retry = self._options.retry
        if isinstance(error, TooManyDeliveries):
            attempt += error.deliveries - 1
        if attempt > retry.limit or isinstance(error, RejectMessage | DecodeError):
            await self._give_up(message, given, attempt, error)
            return
        delay = error.delay if isinstance(error, RetryLater) else None
        delay = retry.delay_after(attempt) if delay is None else max(0.0, delay)
        can_wait = self._later is not None and not message.message_format
        if self._stopping and not can_wait:
            self._report(Failure(given, error, attempt, Fate.RETURNED))
            await self._settle(message.modify, message)
            return
        self._report(Failure(given, error, attempt, Fate.RETRIED, delay))
        if self._later is not None and can_wait:
            await self._replace(self._later, delayed_copy(message, attempt, delay), message, given, attempt)
        else:
            held = self._start(self._hold(message, attempt, delay))
            self._held.add(held)
            held.add_done_callback(self._let_go)
            if len(self._held) >= self._options.max_held:
                self._room.clear()

    async def _hold(self, message: ReceivedMessage, attempt: int, delay: float) -> None:
        """Keep a message for another attempt, where the broker cannot."""
        try:
            await asyncio.sleep(delay)
            await self._slots.acquire()
        except asyncio.CancelledError:
            await self._settle(message.modify, message)
            return
        self._let_go(asyncio.current_task())
        await self._process(message, attempt + 1)

    def _let_go(self, task: asyncio.Task[Any] | None) -> None:
        self._held = {item for item in self._held if item is not task}
        if len(self._held) < self._options.max_held:
            self._room.set()

    async def _give_up(self, message: ReceivedMessage, given: Message, attempt: int, error: BaseException) -> None:
        if self._dead is None:
            self._report(Failure(given, error, attempt, Fate.REJECTED))
            await self._settle(lambda: message.reject("amqp:internal-error", str(error)), message)
            return
        letter = dead_letter(message, attempt, error, self._source.name)
        if await self._replace(self._dead, letter, message, given, attempt):
            self._report(Failure(given, error, attempt, Fate.DEAD_LETTER))

    async def _replace(
        self, sender: Sender, copy: Message, message: ReceivedMessage, given: Message, attempt: int
    ) -> bool:
        """Send a copy, and when the broker has it, accept the message; else that returns to its queue."""
        try:
            await sender.send(copy)
        except MessagingError as error:
            self._report(Failure(given, error, attempt, Fate.RETURNED))
            await self._settle(message.modify, message)
            return False
        await self._settle(message.accept, message)
        return True

    async def _settle(self, decide: Callable[[], Awaitable[None]], message: Message) -> None:
        """Settle a message that the handler has not settled itself. If that fails, it comes again."""
        if not self._session._core.acknowledgements.waits(message):
            return
        try:
            await decide()
        except MessagingError as error:
            log.warning("a message of %r may come again: %s", self._source.name, error)

    def _report(self, failure: Failure) -> None:
        error = failure.error
        log.warning(
            "attempt %d of message %r from %r failed with %s: %s; %s%s",
            failure.attempt,
            failure.message.id,
            self._source.name,
            type(error).__name__,
            error,
            failure.fate.value,
            f", in {failure.delay:g} s" if failure.fate is Fate.RETRIED else "",
            exc_info=error if isinstance(error, Exception) and not isinstance(error, MessagingError) else None,
        )
        if self._options.on_failure is not None:
            try:
                self._options.on_failure(failure)
            except Exception:
                log.exception("the function on_failure of a consumer failed")
