"""Push consumers: a task for each registration takes messages from the broker and sends them to the URL.

A message is acknowledged when the URL has taken it. If this process is lost before, the message is pushed again, with
the same id where it has one: a target that knows ids (`Relation.DESTINATION`) takes it once.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Collection

import attrs
import httpx

from qmf.errors import CallerError
from qmf.messaging import Message, MessagingError, Timeout
from qmf.web.messages.broker_links import BrokerLinks, ConsumerSource
from qmf.web.messages.consumer_ids import ConsumerOptions
from qmf.web.messages.destinations import Destination
from qmf.web.messages.push.registration import PushRegistration
from qmf.web.messages.push.store import PushStore, PushStoreError
from qmf.web.messages.push.target import ANSWER_TIMEOUT, PushOutcome, PushTarget

log = logging.getLogger("qmf.web")

#: Seconds that a task waits for a message before it asks again.
_WAIT = 60.0
#: Seconds until the next attempt after an error of the broker, from the first to the longest.
_FIRST_PAUSE, _LAST_PAUSE = 0.2, 10.0


#: Says of a registration whether its owner may still have its messages.
MayPush = Callable[[PushRegistration], bool]

#: The problem of a registration whose owner may not consume there any more.
NOT_ALLOWED = "its owner may not consume there any more"


class RegistrationExists(CallerError):
    """There is a registration with this id."""


class PushConsumer:
    """A registration at work.

    Attributes:
        registration: as it is now.
        pushed: messages that the URL has taken.
        problem: why the last attempt failed; None after one that did not.
    """

    def __init__(
        self, registration: PushRegistration, links: BrokerLinks, target: PushTarget, may_push: MayPush
    ) -> None:
        self.registration = registration
        self.pushed = 0
        self.problem: str | None = None
        self._links = links
        self._target = target
        self._may_push = may_push
        self._source: ConsumerSource | None = None

    @property
    def _options(self) -> ConsumerOptions:
        durable = self.registration.durable
        name = f"push-{self.registration.id}" if durable else None
        return ConsumerOptions(selector=self.registration.selector, durable=durable, name=name)

    async def open(self) -> None:
        """Open the source; errors as of `BrokerLinks.source`."""
        self._source = await self._links.source(self.registration.destination, self._options)

    async def run(self) -> bool:
        """Push messages until the registration fails, or its owner may not have them any more.

        Returns:
            False: it has failed, and is to be disabled. Otherwise it ends by cancelling.
        """
        pause = _FIRST_PAUSE
        while True:
            try:
                if self._source is None:
                    await self.open()
                assert self._source is not None
                message = await self._source.fetch(_WAIT)
                pause = _FIRST_PAUSE
                if message is not None and not await self._process(self._source, message):
                    return False
            except (MessagingError, Timeout) as error:
                self.problem = str(error)
                log.info("push consumer %s: %s", self.registration.id, error)
                await self._close_source(keep=True)
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LAST_PAUSE)

    async def _process(self, source: ConsumerSource, message: Message) -> bool:
        """Push a message, and tell the broker what became of it; False if the registration is to be disabled."""
        if not self._may_push(self.registration):
            self.problem = NOT_ALLOWED
            await source.release(message)
            return False
        outcome = await self._push(message)
        if outcome is PushOutcome.DONE:
            self.pushed += 1
            await source.accept(message)
            return True
        if outcome is PushOutcome.REFUSED:
            log.warning("push consumer %s: a message was refused: %s", self.registration.id, self.problem)
            await source.reject(message, self.problem or "refused")
            return True
        await source.release(message)
        log.warning("push consumer %s: a message could not be pushed: %s", self.registration.id, self.problem)
        if self.registration.disable_on_failure:
            return False
        await asyncio.sleep(max(self.registration.retry_wait, _FIRST_PAUSE))
        return True

    async def _push(self, message: Message) -> PushOutcome:
        id = str(message.id) if message.id is not None else str(uuid.uuid4())
        left = self.registration.max_retries
        while True:
            attempt = await self._target.push(message, id)
            left -= 1
            self.problem = None if attempt.outcome is PushOutcome.DONE else attempt.reason
            if attempt.outcome is not PushOutcome.RETRY or not left:
                return attempt.outcome
            await asyncio.sleep(self.registration.retry_wait if attempt.wait is None else attempt.wait)

    async def close(self, *, keep: bool) -> None:
        """Close the source; `run` must have ended. With `keep` a durable subscription stays."""
        await self._close_source(keep=keep)

    async def _close_source(self, *, keep: bool) -> None:
        source, self._source = self._source, None
        if source is not None:
            await source.close(keep=keep)


class PushConsumers:
    """All push consumers of a server."""

    def __init__(
        self,
        links: BrokerLinks,
        *,
        store: PushStore | None,
        hosts: Collection[str] | None,
        limit: int,
        may_push: MayPush,
    ) -> None:
        """Begin without consumers.

        Args:
            store: for durable registrations; None: there are none.
            hosts: that may be pushed to; None for any.
            limit: registrations at a time.
            may_push: asked for each message.
        """
        self.hosts = hosts
        self.limit = limit
        self.durable = store is not None
        self._links = links
        self._may_push = may_push
        self._store = store
        self._consumers: dict[str, PushConsumer] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}
        #: Ids of registrations that are being added: their consumers are not there yet.
        self._adding: set[str] = set()
        self._client: httpx.AsyncClient | None = None
        self._restored = False

    def __len__(self) -> int:
        return len(self._consumers) + len(self._adding)

    def restore(self) -> None:
        """Begin with the registrations of the store. A second call does nothing.

        Raises:
            PushStoreError: it cannot be read.
        """
        if self._restored:
            return
        self._restored = True
        for registration in self._store.read() if self._store is not None else ():
            consumer = self._consumers[registration.id] = self._consumer(registration)
            if registration.enabled:
                self._start(consumer)

    async def add(self, registration: PushRegistration) -> None:
        """Begin to push; a durable registration is kept first.

        Raises:
            RegistrationExists: its id is that of another one, of this destination or of another.
            PushStoreError: it cannot be kept.
            MessagingError, Timeout: the broker refuses the source.
        """
        if registration.id in self._consumers or registration.id in self._adding:
            raise RegistrationExists(f"there is a registration {registration.id!r}")
        self._adding.add(registration.id)
        try:
            await self._add(registration)
        finally:
            self._adding.discard(registration.id)

    async def _add(self, registration: PushRegistration) -> None:
        consumer = self._consumer(registration)
        await consumer.open()
        if registration.durable and self._store is not None:
            try:
                await asyncio.to_thread(self._store.write, registration)
            except BaseException:
                await consumer.close(keep=False)
                raise
        self._consumers[registration.id] = consumer
        if registration.enabled:
            self._start(consumer)

    def find(self, destination: Destination, id: str) -> PushConsumer | None:
        """The consumer of a registration, or None."""
        found = self._consumers.get(id)
        return found if found is not None and found.registration.destination == destination else None

    async def delete(self, consumer: PushConsumer) -> None:
        """End a registration, with its subscription.

        Raises:
            PushStoreError: it stays in the store.
        """
        registration = consumer.registration
        if registration.durable and self._store is not None:
            await asyncio.to_thread(self._store.delete, registration)
        self._consumers.pop(registration.id, None)
        await self._stop(registration.id)
        await consumer.close(keep=False)

    async def close(self) -> None:
        """End all; durable registrations and their subscriptions stay."""
        for id in list(self._tasks):
            await self._stop(id)
        for consumer in self._consumers.values():
            await consumer.close(keep=True)
        self._consumers.clear()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    def _consumer(self, registration: PushRegistration) -> PushConsumer:
        if self._client is None:
            self._client = httpx.AsyncClient(timeout=ANSWER_TIMEOUT, follow_redirects=False, trust_env=False)
        return PushConsumer(
            registration, self._links, PushTarget(registration, self._client, self.hosts), self._may_push
        )

    def _start(self, consumer: PushConsumer) -> None:
        id = consumer.registration.id
        self._tasks[id] = asyncio.get_running_loop().create_task(self._run(consumer))

    async def _run(self, consumer: PushConsumer) -> None:
        try:
            await consumer.run()
        except Exception:
            # A defect here or below: the log must tell why nothing is pushed any more.
            log.exception("push consumer %s failed", consumer.registration.id)
        await consumer.close(keep=True)
        await self._disable(consumer)

    async def _disable(self, consumer: PushConsumer) -> None:
        consumer.registration = attrs.evolve(consumer.registration, enabled=False)
        log.warning("push consumer %s is disabled: %s", consumer.registration.id, consumer.problem)
        if consumer.registration.durable and self._store is not None:
            try:
                await asyncio.to_thread(self._store.write, consumer.registration)
            except PushStoreError as error:
                log.error("%s", error)

    async def _stop(self, id: str) -> None:
        task = self._tasks.pop(id, None)
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
