"""Methods of qpidd's own agent, for what AMQP 1.0 has no words for: bindings, and deleting nodes.

A call is a QMF2 method request over a session of its own on the connection of the program.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from qmf.bus.client.network_connection import LinkOwner, NetworkConnection
from qmf.bus.engine.events import Delivery
from qmf.bus.engine.session import EngineSession
from qmf.bus.engine.values import Terminus
from qmf.messaging.addresses import Address
from qmf.messaging.addresses.options import NodeType
from qmf.messaging.bindings import BrokerBinding
from qmf.messaging.contents import APP_ID, decode, encode
from qmf.messaging.exceptions import (
    DecodeError,
    MessagingError,
    NotFound,
    ResolutionError,
    SessionError,
    UnauthorizedAccess,
)
from qmf.messaging.message import Message

#: Seconds that a broker has to answer a call.
CALL_TIMEOUT = 10.0

_EXCHANGE, _SUBJECT = "qmf.default.direct", "broker"
_OBJECT = "org.apache.qpid.broker:broker:amqp-broker"
#: Errors by the word that a refusal begins with. It is the name of the condition, too.
_KINDS: Mapping[str, type[MessagingError]] = {
    "not-found": NotFound,
    "unauthorized-access": UnauthorizedAccess,
    "not-allowed": SessionError,
    "resource-locked": ResolutionError,
    "precondition-failed": ResolutionError,
}


async def bind(network: NetworkConnection, binding: BrokerBinding) -> None:
    """Create a binding; one that exists is left as it is.

    Raises:
        NotFound: exchange or queue do not exist.
        MessagingError: the broker refused, or has not answered.
    """
    name = f"{binding.exchange}/{binding.queue}/{binding.key}"
    arguments = {"type": "binding", "name": name, "properties": dict(binding.arguments), "strict": True}
    await _call(network, "create", arguments, f"binding {name!r}")


async def delete(network: NetworkConnection, node: str, kind: NodeType | None) -> None:
    """Delete a node; one that is gone already is no error.

    Args:
        network: to the broker.
        node: its name.
        kind: of the node; None for a queue or, where there is none, an exchange.

    Raises:
        MessagingError: the broker refused, or has not answered.
    """
    kinds = {NodeType.QUEUE: ("queue",), NodeType.TOPIC: ("exchange",), None: ("queue", "exchange")}[kind]
    for name in kinds:
        try:
            await _call(network, "delete", {"type": name, "name": node, "options": {}}, f"deletion of {node!r}")
        except NotFound:
            continue
        return


class _Requests(LinkOwner):
    """The link of the request, or that of its answer."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.attached: asyncio.Future[None] = loop.create_future()
        self.credit: asyncio.Future[None] = loop.create_future()
        self.answer: asyncio.Future[Delivery] = loop.create_future()

    def on_attached(self) -> None:
        """See `LinkOwner`."""
        _resolve(self.attached)

    def on_credit(self) -> None:
        """See `LinkOwner`."""
        _resolve(self.credit)

    def on_delivery(self, delivery: Delivery) -> None:
        """See `LinkOwner`."""
        if not self.answer.done():
            self.answer.set_result(delivery)

    def on_detached(self, condition: str, description: str) -> None:
        """See `LinkOwner`."""
        error = ResolutionError(condition or None, description)
        for future in (self.attached, self.credit, self.answer):
            if not future.done():
                future.set_exception(error)
                future.exception()


def _resolve(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


async def _call(network: NetworkConnection, method: str, arguments: Mapping[str, object], what: str) -> None:
    engine = network.engine
    session = engine.sessions.begin()
    try:
        async with asyncio.timeout(CALL_TIMEOUT):
            answer = await _exchange(network, session, method, arguments)
    except TimeoutError:
        raise ResolutionError(
            text=f"{what}: no answer from the broker's management within {CALL_TIMEOUT:g} s"
        ) from None
    except MessagingError as error:
        raise ResolutionError(error.code, f"{what}: the broker's management cannot be reached: {error}") from error
    finally:
        if network.transport.connected:
            engine.sessions.end(session)
            network.transport.flush_soon()
    if answer.properties.get("qmf.opcode") == "_exception":
        raise _refusal(answer, what)


async def _exchange(
    network: NetworkConnection, session: EngineSession, method: str, arguments: Mapping[str, object]
) -> Message:
    """Send a request and wait for its answer."""
    engine, transport = network.engine, network.transport
    answers, requests = _Requests(), _Requests()
    name = f"management-{id(session)}"
    source = engine.links.attach(
        f"{name}-answers", is_sender=False, terminus=Terminus(dynamic=True), credit=1, session=session
    )
    target = engine.links.attach(f"{name}-requests", is_sender=True, terminus=Terminus(_EXCHANGE), session=session)
    network.set_owner(source, answers)
    network.set_owner(target, requests)
    transport.flush_soon()
    try:
        for future in (answers.attached, requests.attached, requests.credit):
            await future
        assert source.source is not None
        request = Message(
            {"_object_id": {"_object_name": _OBJECT}, "_method_name": method, "_arguments": arguments},
            reply_to=Address.of(source.source.address or ""),
            correlation_id="1",
            properties={APP_ID: "qmf2", "qmf.opcode": "_method_request", "method": "request"},
        )
        engine.deliveries.send(target, encode(request, _SUBJECT, _EXCHANGE), settled=True)
        transport.flush_soon()
        delivery = await answers.answer
        if delivery.delivery_tag is not None:
            engine.decisions.settle(source, delivery.delivery_tag)
        return decode(delivery.data)
    finally:
        network.remove_owner(source)
        network.remove_owner(target)


def _refusal(answer: Message, what: str) -> MessagingError:
    try:
        text = answer.content["_values"]["error_text"]
    except (TypeError, KeyError) as error:
        raise DecodeError(text=f"{what}: the answer of the broker's management is not understood") from error
    text = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    text = text.partition(" (/")[0]  # without the source file
    word = text.partition(":")[0]
    condition = f"amqp:{word}" if word in _KINDS else None
    return _KINDS.get(word, ResolutionError)(condition, f"{what} refused by the broker: {text}")
