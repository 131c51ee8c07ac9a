"""Messages that are created with an id of the client: however often the client posts one, it is sent once.

The ids are messages in a queue of the broker, ``qmf.web.created``, each sent in one transaction with the message that
it is the id of. So both are there or neither, whatever process is killed when, and the ids are as durable as the
broker's queues are. A server reads them when it first needs them. They expire after a day, and of more than 20,000 the
oldest are forgotten.

A broker without transactions (RabbitMQ) has no such queue: there, ids are known as long as this process lives, and one
whose message was on the way when the process or the connection was lost may be sent again.
"""

from __future__ import annotations

import asyncio
import collections
import logging

from qmf.messaging import AddressError, Empty, Message, Timeout
from qmf.messaging.aio import Connection, Sender, Session
from qmf.messaging.exceptions import TransactionAborted, TransactionError, TransactionUnknown
from qmf.web.messages.broker_links import ANSWER_TIMEOUT, BrokerLinks
from qmf.web.messages.destinations import Destination

log = logging.getLogger("qmf.web")

#: The queue of the ids.
QUEUE = "qmf.web.created"
#: Ids that are remembered.
MAX_IDS = 20_000
#: Seconds for which they are.
KEPT = 24 * 3600.0
#: Senders of one session.
_MAX_SENDERS = 50

_RING = f"x-declare: {{arguments: {{'qpid.policy_type': ring, 'qpid.max_count': {MAX_IDS}}}}}"
#: How the queue is asked for: the first form that the broker takes.
_FORMS = (
    f"{QUEUE}; {{create: always, node: {{type: queue, durable: True, {_RING}}}}}",
    f"{QUEUE}; {{create: always, node: {{type: queue, {_RING}}}}}",
    f"{QUEUE}; {{create: always, node: {{type: queue}}}}",
)

_Key = tuple[str, str]


class Creations:
    """Creates messages with ids."""

    def __init__(self, links: BrokerLinks) -> None:
        self._links = links
        self._created: collections.OrderedDict[_Key, None] = collections.OrderedDict()
        #: Creations that are going on.
        self._pending: dict[_Key, asyncio.Future[None]] = {}
        self._lock = asyncio.Lock()
        self._transactions: _Transactions | None = None
        self._loaded = False
        #: The connection that has turned out to have no transactions.
        self._without: Connection | None = None

    async def create(self, destination: Destination, id: str, message: Message) -> bool:
        """Send a message unless one with that id was sent to the same destination.

        Returns:
            False if one was.

        Raises:
            MessagingError, Timeout: the broker did not accept it, or does not answer.
        """
        key = destination.path, id
        while (pending := self._pending.get(key)) is not None:
            await asyncio.wait([pending])
        if key in self._created:
            return False
        done = self._pending[key] = asyncio.get_running_loop().create_future()
        try:
            async with self._lock:
                return await self._create(key, destination, message)
        finally:
            del self._pending[key]
            done.set_result(None)

    async def _create(self, key: _Key, destination: Destination, message: Message) -> bool:
        connection = await self._links.check_attached()
        transactions = await self._begin(connection)
        if key in self._created:
            return False
        if transactions is None:
            await self._links.send(destination, message)
            self._remember(key)
            return True
        try:
            await transactions.send(key, destination, message)
        except (TransactionUnknown, Timeout):
            # Committed or not: the queue tells.
            self._drop()
            transactions = await self._begin(await self._links.check_attached())
            if key not in self._created:
                raise
        except BaseException:
            self._drop()
            raise
        self._remember(key)
        return True

    async def _begin(self, connection: Connection) -> _Transactions | None:
        """The session for transactions, with the ids of the queue read; None if the broker has none."""
        known = self._transactions
        if known is not None and known.is_usable(connection):
            return known
        self._drop()
        if self._without is connection:
            return None
        session = await self._transactional(connection)
        if session is None:
            self._without = connection
            return None
        try:
            await self._declare(connection)
            if not self._loaded:
                for key in await _read(connection):
                    self._remember(key)
                self._loaded = True
            markers = await session.sender(QUEUE, timeout=ANSWER_TIMEOUT)
        except BaseException:
            session.abandon()
            raise
        self._transactions = _Transactions(connection, session, markers)
        return self._transactions

    @staticmethod
    async def _transactional(connection: Connection) -> Session | None:
        try:
            return await connection.session(transactional=True, timeout=ANSWER_TIMEOUT)
        except TransactionError as error:
            log.info("ids of created messages are kept in memory only: %s", error)
            return None

    def _drop(self) -> None:
        """Give the session up; the next one reads the queue again."""
        if self._transactions is not None:
            self._transactions.session.abandon()
        self._transactions = None
        self._loaded = False

    @staticmethod
    async def _declare(connection: Connection) -> None:
        """Create the queue if there is none.

        Raises:
            MessagingError, Timeout: the broker refuses every form of it.
        """
        session = await connection.session(timeout=ANSWER_TIMEOUT)
        try:
            for form in _FORMS:
                try:
                    await session.sender(form, timeout=ANSWER_TIMEOUT)
                except AddressError as error:
                    log.debug("%s", error)
                    if form is _FORMS[-1]:
                        raise
                else:
                    return
        finally:
            session.abandon()

    def _remember(self, key: _Key) -> None:
        self._created[key] = None
        while len(self._created) > MAX_IDS:
            self._created.popitem(last=False)


class _Transactions:
    """A transactional session with its senders."""

    def __init__(self, connection: Connection, session: Session, markers: Sender) -> None:
        self.session = session
        self._connection = connection
        self._markers = markers
        self._senders: dict[Destination, Sender] = {}

    def is_usable(self, connection: Connection) -> bool:
        return connection is self._connection and self.session.get_error() is None and not self.session.closed

    async def send(self, key: _Key, destination: Destination, message: Message) -> None:
        sender = self._senders.get(destination)
        if sender is None:
            if len(self._senders) >= _MAX_SENDERS:
                old = next(iter(self._senders))
                await self._senders.pop(old).close(ANSWER_TIMEOUT)
            sender = self._senders[destination] = await self.session.sender(
                destination.address(), timeout=ANSWER_TIMEOUT
            )
        path, id = key
        marker = Message(properties={"destination": path, "id": id}, durable=True, ttl=KEPT)
        results = await asyncio.gather(
            sender.send(message, timeout=ANSWER_TIMEOUT),
            self._markers.send(marker, timeout=ANSWER_TIMEOUT),
            return_exceptions=True,
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result
        try:
            await self.session.commit(ANSWER_TIMEOUT)
        except TransactionAborted as error:
            raise TransactionAborted(error.code, f"the message was not created: {error.text}") from error


async def _read(connection: Connection) -> list[_Key]:
    """The ids in the queue, the oldest first."""
    found: list[_Key] = []
    session = await connection.session(timeout=ANSWER_TIMEOUT)
    try:
        browser = await session.receiver(f"{QUEUE}; {{mode: browse}}", capacity=1000, timeout=ANSWER_TIMEOUT)
        while True:
            try:
                marker = await browser.fetch(0)
            except Empty:
                return found
            destination, id = marker.properties.get("destination"), marker.properties.get("id")
            if isinstance(destination, str) and isinstance(id, str):
                found.append((destination, id))
    finally:
        session.abandon()
