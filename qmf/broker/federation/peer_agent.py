"""Requests to the agent of another broker, on the connection of a link to it: methods of its broker object."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable, Mapping

from qmf._marks import receiving_link_name, sending_link_name
from qmf.broker.nodes.bindings import BindingSpec
from qmf.bus.client.failures import FailureKind, NetworkFailure
from qmf.bus.client.network_connection import LinkOwner, NetworkConnection
from qmf.bus.engine.events import Delivery
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Filter, Terminus
from qmf.errors import PeerError
from qmf.protocol.contents import (
    Content,
    Envelope,
    ExceptionResponse,
    MethodRequest,
    ObjectsResponse,
    QueryRequest,
    What,
)
from qmf.protocol.decode import decode
from qmf.protocol.encode import encode
from qmf.protocol.v1 import V1Message
from qmf.protocol.values import ObjectId
from qmf.schema import ClassKey

log = logging.getLogger("qmf.broker.federation")

#: Exchange of requests and answers, and routing key of the agent inside a broker.
EXCHANGE, AGENT = "qmf.default.direct", "broker"
_BROKER = ObjectId("org.apache.qpid.broker:broker:amqp-broker")
_KEY_FILTER = "legacy-amqp-direct-binding"
#: Seconds that the agent has for an answer.
ANSWER_TIMEOUT = 10.0
#: Requests at the same time: each needs credit in both directions.
_IN_FLIGHT = 50


class PeerRefusal(Exception):
    """The agent of the other broker refuses a request; its text."""


class _End(LinkOwner):
    """One of the two links: reports that it is granted, and that it is gone."""

    def __init__(self, on_gone: Callable[[str], None], on_message: Callable[[bytes], None]) -> None:
        self.attached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.has_credit = asyncio.Event()
        self._on_gone = on_gone
        self._on_message = on_message

    def on_attached(self) -> None:
        if not self.attached.done():
            self.attached.set_result(None)

    def on_credit(self) -> None:
        self.has_credit.set()

    def on_detached(self, condition: str, description: str) -> None:
        self._on_gone(description or condition)

    def on_delivery(self, delivery: Delivery) -> None:
        self._on_message(delivery.data)


class PeerAgent:
    """The agent of another broker, while a connection to it is there."""

    def __init__(self, network: NetworkConnection) -> None:
        """Make what calls the agent; `open` first.

        Args:
            network: an open connection to the broker.
        """
        self._network = network
        self._loop = asyncio.get_running_loop()
        self._key = f"qmf-link-{uuid.uuid4()}"
        #: By the numbers of requests: done with the last part of the answer, and its parts so far.
        self._answers: dict[str, asyncio.Future[None]] = {}
        self._parts: dict[str, list[Content]] = {}
        self._number = 0
        self._slots = asyncio.Semaphore(_IN_FLIGHT)
        self._receiver = _End(self._on_gone, self._on_answer)
        self._sender = _End(self._on_gone, self._on_answer)
        self._sending: Link | None = None
        self._receiving: Link | None = None

    async def open(self) -> None:
        """Ask for the links.

        Raises:
            NetworkFailure: the connection is lost, or the other broker refuses them.
        """
        links = self._network.engine.links
        answers = Terminus(EXCHANGE, filters=(Filter(_KEY_FILTER, f"apache.org:{_KEY_FILTER}:string", self._key),))
        self._receiving = links.attach(
            receiving_link_name(), is_sender=False, terminus=answers, credit=_IN_FLIGHT, presettled=True
        )
        self._network.set_owner(self._receiving, self._receiver)
        self._sending = links.attach(sending_link_name(), is_sender=True, terminus=Terminus(EXCHANGE), presettled=True)
        self._network.set_owner(self._sending, self._sender)
        self._network.transport.flush_soon()
        await asyncio.gather(self._receiver.attached, self._sender.attached)

    async def call_create(self, type: str, name: str, properties: Mapping[str, object]) -> None:
        """Call the method ``create`` of the broker's object.

        Raises:
            PeerRefusal: the agent refuses it.
            NetworkFailure: there is no answer, or the connection is lost.
        """
        arguments = {"type": type, "name": name, "properties": dict(properties), "strict": False}
        await self._request(MethodRequest(method="create", object_id=_BROKER, arguments=arguments))

    async def call_delete(self, type: str, name: str) -> None:
        """Call the method ``delete`` of the broker's object; errors as of `call_create`."""
        arguments = {"type": type, "name": name, "options": {}}
        await self._request(MethodRequest(method="delete", object_id=_BROKER, arguments=arguments))

    async def bindings_of(self, exchange: str, queue: str) -> list[BindingSpec]:
        """The bindings of a queue to an exchange; errors as of `call_create`."""
        asked = QueryRequest(what=What.OBJECT, class_key=ClassKey("org.apache.qpid.broker", "binding"))
        parts = [part for part in await self._request(asked) if isinstance(part, ObjectsResponse)]
        found = []
        for values in (item.values for part in parts for item in part.objects):
            ends = [_name(values.get("exchangeRef")), _name(values.get("queueRef"))]
            if ends == [exchange, queue]:
                arguments = values.get("arguments")
                headers = arguments if isinstance(arguments, Mapping) else {}
                texts = {_text(name): _text(value) for name, value in headers.items()}
                found.append(BindingSpec(_text(values.get("bindingKey")), texts))
        return found

    async def depth_of(self, queue: str) -> int | None:
        """The messages in a queue, None if there is no such queue; errors as of `call_create`."""
        asked = QueryRequest(what=What.OBJECT, object_id=ObjectId(f"org.apache.qpid.broker:queue:{queue}"))
        parts = [part for part in await self._request(asked) if isinstance(part, ObjectsResponse)]
        found = [item.values.get("msgDepth") for part in parts for item in part.objects]
        return next((depth for depth in found if isinstance(depth, int)), None)

    def lose(self, failure: NetworkFailure) -> None:
        """The connection is lost: nothing that waits is answered any more."""
        for waiting in (self._receiver.attached, self._sender.attached, *self._answers.values()):
            if not waiting.done():
                waiting.set_exception(failure)
                waiting.exception()  # not everybody waits for it
        self._sender.has_credit.set()

    async def _request(self, content: MethodRequest | QueryRequest) -> list[Content]:
        """The parts of the answer to a request."""
        async with self._slots:
            number = self._number = self._number + 1
            answer = self._answers[str(number)] = self._loop.create_future()
            parts = self._parts[str(number)] = []
            try:
                async with asyncio.timeout(ANSWER_TIMEOUT):
                    await self._send(content, str(number))
                    await answer
            except TimeoutError:
                raise self._failure(
                    f"its agent has not answered within {ANSWER_TIMEOUT:g} s; dynamic routes need the management of "
                    "the other broker"
                ) from None
            finally:
                self._answers.pop(str(number), None)
                self._parts.pop(str(number), None)
        return parts

    async def _send(self, content: MethodRequest | QueryRequest, number: str) -> None:
        request = Envelope(content=content, subject=AGENT, reply_to=f"{EXCHANGE}/{self._key}", correlation_id=number)
        network, link = self._network, self._sending
        assert link is not None
        while network.usable and not network.engine.links.credit(link):
            self._sender.has_credit.clear()
            await self._sender.has_credit.wait()
        if not network.usable:
            raise network.failure or self._failure("the connection is being closed")
        network.engine.deliveries.send(link, encode(request))
        network.transport.flush_soon()

    def _on_answer(self, data: bytes) -> None:
        if self._receiving is not None and self._network.usable:
            self._network.engine.links.add_credit(self._receiving, 1)
            self._network.transport.flush_soon()
        try:
            message = decode(data)
        except PeerError as error:
            log.warning("an answer of the agent of %s cannot be read: %s", self._network.url, error)
            return
        if isinstance(message, V1Message):
            return
        waiting = self._answers.get(message.correlation_id or "")
        if waiting is None or waiting.done():
            return
        if isinstance(message.content, ExceptionResponse):
            waiting.set_exception(PeerRefusal(message.content.text or "refused, without a reason"))
            return
        self._parts[message.correlation_id or ""].append(message.content)
        if not message.partial:
            waiting.set_result(None)

    def _on_gone(self, reason: str) -> None:
        self.lose(self._failure(f"a link to its agent is gone: {reason}" if reason else "a link to its agent is gone"))

    def _failure(self, reason: str) -> NetworkFailure:
        return NetworkFailure(self._network.url, f"the other broker: {reason}", FailureKind.CLOSED)


def _name(reference: object) -> str:
    """Name of a node that an object refers to: the last part of that of the object."""
    name = reference.get("_object_name") if isinstance(reference, Mapping) else reference
    return _text(name).split(":", 2)[-1]


def _text(value: object) -> str:
    """qpidd sends texts as bytes."""
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
