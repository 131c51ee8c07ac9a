"""Requests to agents and the answers to them: all messages that a client sends, and the matching of what comes back.

Requests are QMFv2 messages; what only QMFv1 has, like the schemas of qpidd, is requested in QMFv1 (QMF2.md 8). The
reply addresses are bound before anything is sent, so that no answer is missed. Knows no objects and no schemas.
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Awaitable, Callable
from typing import TypeVar

import attrs

from qmf.bus.base import Binding, Bus, ExchangeKind, MessageCallback, OutcomeCallback, Subscription
from qmf.codec import Message, Section, encode_message
from qmf.console.aio.agents.registry import Agent
from qmf.console.aio.rpc.requests import PendingRequests, RequestCounts
from qmf.errors import DisconnectedError, LinkError, ProtocolError, QmfError, RemoteError
from qmf.protocol import (
    AMQ_DIRECT,
    BROKER,
    LOCATE_KEY,
    V1_EXCHANGE,
    BrokerResponse,
    ClassResponse,
    CommandComplete,
    Content,
    Envelope,
    Frame,
    LocateRequest,
    PackageResponse,
    QueryRequest,
    RequestEncoder,
    SchemaResponse,
    V1Message,
    console_key,
    direct_exchange,
    encode_frames,
    topic_exchange,
)

log = logging.getLogger("qmf.console")

C = TypeVar("C")

#: Correlation ids of locate requests, the same as libqmf2's. The first goes to the connected broker's agent alone.
LOCATE_BROKER = "broker-locate"
LOCATE_ALL = "agent-locate"

#: QMFv1 frames that answer requests; of these, the ones that complete an answer (QMF2.md 8.2).
_V1_ANSWERS = (CommandComplete, PackageResponse, ClassResponse, SchemaResponse, BrokerResponse)
_V1_LAST = (CommandComplete, SchemaResponse, BrokerResponse)


@attrs.frozen
class Address:
    """Where a message goes: an exchange and a routing key."""

    exchange: str
    key: str


class RpcChannel:
    """Sends requests over a bus and returns their answers."""

    def __init__(self, bus: Bus, domain: str) -> None:
        self.reply_key = console_key(str(uuid.uuid4()))
        """The routing key under which answers are received."""
        self._bus = bus
        self._topic = topic_exchange(domain)
        self._direct = direct_exchange(domain)
        self._requests = PendingRequests()
        self._encoder = RequestEncoder()
        self._replies: list[Subscription] = []
        self._v1_bound = False
        self._v1_refusal: LinkError | None = None
        self._one_at_a_time = asyncio.Lock()
        self._reason = "not opened yet"

    # -- the connection

    async def open(self, deliver: MessageCallback) -> None:
        """Bind the reply addresses; `deliver` gets the messages.

        Raises:
            NetworkError: the broker refused the QMFv2 address, or there is no connection.
        """
        self._replies.append(await self._bus.subscribe(Binding(self._topic, self.reply_key), deliver))
        await self.open_v1(deliver)

    async def open_v1(self, deliver: MessageCallback) -> None:
        """Bind the reply address of QMFv1 unless it is bound: brokers other than qpidd may lack its exchange."""
        if self._v1_bound:
            return
        try:
            replies = Binding(AMQ_DIRECT, self.reply_key, ExchangeKind.DIRECT)
            self._replies.append(await self._bus.subscribe(replies, deliver))
        except LinkError as error:
            log.info("this broker has no QMFv1: %s", error)
            self._v1_refusal = error
        else:
            self._v1_bound, self._v1_refusal = True, None

    async def close(self) -> None:
        """Unbind the reply addresses."""
        replies, self._replies = self._replies, []
        for subscription in replies:
            await subscription.close()

    def disconnected(self, reason: str) -> None:
        """The connection is lost: every pending request fails."""
        self._reason = reason
        self._requests.lose_all(self._not_connected())

    def check_connected(self) -> None:
        """Do nothing while there is a connection.

        Raises:
            DisconnectedError: there is none; names the reason.
        """
        if not self._bus.connected:
            raise self._not_connected()

    def _not_connected(self) -> DisconnectedError:
        return DisconnectedError(self._bus.url, self._reason)

    # -- sending

    @property
    def counts(self) -> RequestCounts:
        """How the requests ended so far."""
        return self._requests.counts

    async def request(self, agent: Agent, content: Content, expect: type[C], *, what: str, timeout: float) -> list[C]:
        """Send a request to an agent and wait for its answer.

        Args:
            agent: the agent.
            content: the request.
            expect: the type of each part of the answer.
            what: the request in words, for messages.
            timeout: seconds to wait.

        Returns:
            the parts of the answer.

        Raises:
            ProtocolError: the answer belongs to another kind of request.
            RequestTimeout, NetworkError, AgentLost, RemoteError: see `PendingRequests.ask`.
        """
        address = self._address(agent)

        def send(number: int) -> Awaitable[None]:
            return self._bus.send(self._encoded(content, address, str(number)), confirm=True)

        def post(number: int, on_outcome: OutcomeCallback) -> bool:
            return self._bus.try_send(self._encoded(content, address, str(number)), on_outcome)

        if isinstance(content, QueryRequest):
            parts = await self._repeated(lambda: self._requests.ask(send, what=what, agent=agent.name, timeout=timeout))
        else:
            parts = await self._requests.ask(send, what=what, agent=agent.name, timeout=timeout, post=post)
        return [_expected(part, expect, what, agent.name) for part in parts]

    async def request_v1(
        self, agent: Agent, build: Callable[[int], Frame], expect: type[C], *, what: str, timeout: float
    ) -> list[C]:
        """Send a QMFv1 request to an agent and wait for its answer.

        Args:
            agent: the agent; the qpidd that we are connected to has an address of its own for QMFv1.
            build: makes the request for a sequence number.
            expect: the type of the frames to return.
            what: the request in words, for messages.
            timeout: seconds to wait.

        Returns:
            the frames of that type in the answer.

        Raises:
            LinkError: this broker has no exchange for QMFv1 answers.
            RequestTimeout, NetworkError, AgentLost, RemoteError: see `PendingRequests.ask`.
        """
        address = Address(V1_EXCHANGE, BROKER) if agent.is_broker and agent.is_qpidd else self._address(agent)

        async def send(number: int) -> None:
            if self._v1_refusal is not None:
                refusal = self._v1_refusal
                raise LinkError(refusal.address, refusal.condition, refusal.description)
            await self._bus.send(self._encoded_v1(build(number), address), confirm=True)

        parts = await self._repeated(lambda: self._requests.ask(send, what=what, agent=agent.name, timeout=timeout))
        return [part for part in parts if isinstance(part, expect)]

    async def send(self, content: Content, agent: Agent | str) -> None:
        """Send a message that has no answer.

        Args:
            content: the message.
            agent: the agent, or the name of one that is not known any more.

        Raises:
            DisconnectedError: no connection.
        """
        address = Address(self._direct, agent) if isinstance(agent, str) else self._address(agent)
        await self._bus.send(self._encoded(content, address, None))

    async def locate(self) -> None:
        """Ask all agents to announce themselves, and the connected broker's agent in particular."""
        try:
            for address, correlation_id in (
                (Address(self._direct, BROKER), LOCATE_BROKER),
                (Address(self._topic, LOCATE_KEY), LOCATE_ALL),
            ):
                await self._bus.send(self._encoded(LocateRequest(), address, correlation_id))
        except DisconnectedError as error:
            log.info("cannot locate agents: %s", error)

    def _address(self, agent: Agent) -> Address:
        """Where an agent receives requests: the subject that it advertises, else its name (QMF2.md 4.4)."""
        if agent.info.direct_subject:
            return Address(self._topic, agent.info.direct_subject)
        return Address(self._direct, agent.name)

    def _encoded(self, content: Content, address: Address, correlation_id: str | None) -> bytes:
        return self._encoder.encode(
            Envelope(
                content=content,
                to=address.exchange,
                subject=address.key,
                reply_to=f"{self._topic}/{self.reply_key}",
                correlation_id=correlation_id,
            )
        )

    def _encoded_v1(self, frame: Frame, address: Address) -> bytes:
        """A QMFv1 request; its answer comes on `amq.direct` (QMF2.md 8.3)."""
        message = Message(
            to=address.exchange,
            subject=address.key,
            reply_to=f"{AMQ_DIRECT}/{self.reply_key}",
            content_type="x-application/qmf",
            body=encode_frames([frame]),
            section=Section.DATA,
        )
        return encode_message(message)

    async def _repeated(self, ask: Callable[[], Awaitable[list[object]]]) -> list[object]:
        """Send a request; if the broker closes the sending link meanwhile, send it once more.

        qpidd answers a forbidden request by closing the link, and the permitted requests behind it are lost, too
        (QMF2.md 7.2); nothing distinguishes them. So all are sent again, one at a time, and the forbidden one is
        refused again. Only for requests that change nothing at the agent.
        """
        try:
            return await ask()
        except LinkError:
            async with self._one_at_a_time:
                return await ask()

    # -- answers

    def is_pending(self, envelope: Envelope) -> bool:
        """True when an answer belongs to a pending request."""
        return _number(envelope.correlation_id) in self._requests

    def answered(self, envelope: Envelope) -> None:
        """An agent sent an answer, or a part of one."""
        self._requests.part(_number(envelope.correlation_id), envelope.content, last=not envelope.partial)

    def failed(self, correlation_id: str | None, error: QmfError) -> None:
        """An agent answered with an exception, or its answer is not valid."""
        self._requests.refuse(_number(correlation_id), error)

    def answered_v1(self, message: V1Message) -> int:
        """An agent sent QMFv1 frames.

        Returns:
            the number of frames that answer nothing.
        """
        strays = 0
        for frame in message.frames:
            if isinstance(frame, CommandComplete) and frame.code:
                error = RemoteError(frame.text or "refused", frame.code, message.agent)
                self._requests.refuse(frame.sequence, error)
            elif isinstance(frame, _V1_ANSWERS):
                self._requests.part(frame.sequence, frame, last=isinstance(frame, _V1_LAST))
            else:
                strays += 1
        return strays

    def agent_lost(self, agent: str, reason: str) -> None:
        """An agent is gone or has restarted: its pending requests fail."""
        self._requests.lose_agent(agent, reason)


def _expected(part: object, expect: type[C], what: str, agent: str) -> C:
    if isinstance(part, expect):
        return part
    raise ProtocolError(f"agent {agent} answered {what} with {type(part).__name__}")


def _number(correlation_id: str | None) -> int:
    """The id of the request that an answer belongs to; 0, which no request has, for any other correlation id."""
    text = correlation_id or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
