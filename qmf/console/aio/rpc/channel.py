"""Requests to agents and the answers to them: all messages that a client sends, and the matching of what comes back.

Requests are QMFv2 messages; what only QMFv1 has, like the schemas of qpidd, is requested in QMFv1 (QMF2.md 8). The
reply addresses are bound before anything is sent, so that no answer is missed. Knows no objects and no schemas, and
doesn't look into answers. The life of a request is in `requests`.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, TypeVarTuple

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf.bus.base import Binding, Bus, DataCallback, ExchangeKind, MessageCallback, OutcomeCallback, Subscription
from qmf.codec import Message, Section, encode_message
from qmf.console.aio.agents import Agent
from qmf.console.aio.rpc.pending_requests import PendingRequests
from qmf.console.aio.rpc.requests import AgentLost, Request, RequestCounts, RequestEvent, RequestState
from qmf.errors import (
    DisconnectedError,
    LinkError,
    ProtocolError,
    QmfError,
    RemoteError,
)
from qmf.protocol import (
    AMQ_DIRECT,
    BROKER,
    LOCATE_KEY,
    V1_EXCHANGE,
    Answer,
    BrokerResponse,
    ClassResponse,
    CommandComplete,
    Content,
    Envelope,
    Frame,
    LocateRequest,
    MethodRequest,
    MethodResponse,
    ObjectId,
    PackageResponse,
    QueryRequest,
    SchemaResponse,
    V1Message,
    call_form,
    console_key,
    direct_exchange,
    encode_correlated,
    encode_frames,
    topic_exchange,
)

log = logging.getLogger("qmf.console")

C = TypeVar("C")
Ts = TypeVarTuple("Ts")

#: Times to live in seconds that a message can't have: they are counted in milliseconds, with 32 bits.
MAX_TIME_TO_LIVE = 4_000_000.0

#: Encodes a request with the given id.
Encode = Callable[[int], bytes]

#: Correlation ids of locate requests, the same as libqmf2's. The first goes to the connected broker's agent alone.
LOCATE_BROKER = "broker-locate"
LOCATE_ALL = "agent-locate"

#: QMFv1 frames that answer requests; of these, the ones that complete an answer (QMF2.md 8.2).
_V1_ANSWERS = (CommandComplete, PackageResponse, ClassResponse, SchemaResponse, BrokerResponse)
_V1_LAST = (CommandComplete, SchemaResponse, BrokerResponse)


@attrs.frozen
class RequestAddress:
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
        self._reply_to = f"{self._topic}/{self.reply_key}"
        self._direct = direct_exchange(domain)
        self._pending = PendingRequests()
        self._sending = BackgroundTasks()
        self._replies: list[Subscription] = []
        self._v1_bound = False
        self._v1_refusal: LinkError | None = None
        self._one_at_a_time = asyncio.Lock()
        self._reason = "not opened yet"
        #: The one that runs, which it need not when this is made.
        self._loop: asyncio.AbstractEventLoop | None = None

    # -- the connection

    async def open(self, deliver_data: DataCallback, deliver: MessageCallback) -> None:
        """Bind the reply addresses.

        Args:
            deliver_data: called with the encoded messages that come to the QMFv2 address.
            deliver: called with those that come to that of QMFv1.

        Raises:
            NetworkError: the broker refused the QMFv2 address, or there is no connection.
        """
        self._loop = asyncio.get_running_loop()
        self._replies.append(await self._bus.subscribe_data(Binding(self._topic, self.reply_key), deliver_data))
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

    def on_disconnected(self, reason: str) -> None:
        """The connection is lost: every pending request fails."""
        self._reason = reason
        self._pending.lose_all(self._not_connected)

    def check_connected(self) -> None:
        """Do nothing while there is a connection.

        Raises:
            DisconnectedError: there is none; names the reason.
        """
        if not self._bus.connected:
            raise self._not_connected()

    def _not_connected(self) -> DisconnectedError:
        return DisconnectedError(self._bus.url, self._reason)

    # -- requests

    @property
    def counts(self) -> RequestCounts:
        """How the requests ended so far."""
        return self._pending.counts

    async def request(
        self, agent: Agent, content: Content, expect: type[C], *, what: str, timeout: float, enough: int = 0
    ) -> list[C]:
        """Send a request to an agent and wait for its whole answer.

        Args:
            content: the request.
            expect: the type of each part of the answer.
            what: the request in words, for messages.
            timeout: seconds for everything, sending included.
            enough: of objects, how many are enough: further parts are not waited for. 0 for all.

        Returns:
            the parts of the answer, in order of arrival.

        Raises:
            RequestTimeout: no complete answer in time.
            NetworkError: the broker refused the message, or the connection was lost.
            AgentLost: the agent went away or restarted.
            RemoteError: the agent answered with an exception.
            ProtocolError: the answer is not valid, or belongs to another kind of request.

        Cancelling forgets the request; the agent may have carried it out.
        """
        address = self._address(agent)

        def encode(number: int) -> bytes:
            return self._encode_request(content, address, str(number))

        ask = self._ask_repeatedly if isinstance(content, QueryRequest) else self._ask
        parts = await ask(encode, what, agent.name, timeout, enough)
        return [_expect(part, expect, what, agent.name) for part in parts]

    async def call(
        self,
        agent: Agent,
        method: str,
        object_id: ObjectId,
        arguments: Mapping[str, object],
        on_behalf_of: str | None,
        *,
        words: Callable[[], str],
        timeout: float,
    ) -> Mapping[str, object]:
        """Call a method: the same as `request`, for what is called often.

        Args:
            agent, timeout: as of `request`.
            method, object_id, arguments, on_behalf_of: as of `MethodRequest`.
            words: says the request in words, for messages.

        Returns:
            the outputs, as sent.

        Raises:
            as of `request`.
        """
        ttl, name = _time_to_live(timeout), agent.info.name
        if on_behalf_of is None:
            subject = agent.info.direct_subject
            exchange, key = (self._topic, subject) if subject else (self._direct, name)
            encode_call = call_form(exchange, key, self._reply_to, None, method, object_id, self._bus.user).encode
        else:
            call = MethodRequest(method=method, object_id=object_id, arguments=arguments, on_behalf_of=on_behalf_of)

            def encode_call(number: str, arguments: Mapping[str, object], ttl: float | None) -> bytes:  # noqa: ARG001
                return self._encode_request(call, self._address(agent), number, ttl)

        request, sending = self._begin(words, name, timeout), None
        request.takes_outputs = True
        outputs: Mapping[str, object] = {}
        try:
            sending = self._start(request, encode_call, str(request.id), arguments, ttl)
            for part in await request.future:
                outputs = part if type(part) is dict else _expect(part, MethodResponse, words, name).arguments
        finally:
            if sending is not None or request.state is not RequestState.ANSWERED:
                self._leave(request, sending)
        return outputs

    async def request_v1(
        self, agent: Agent, build: Callable[[int], Frame], expect: type[C], *, what: str, timeout: float
    ) -> list[C]:
        """Send a QMFv1 request to an agent and wait for its whole answer; see `request`.

        Args:
            agent: the agent; the qpidd that we are connected to has an address of its own for QMFv1.
            build: makes the request for a sequence number.
            expect: the type of the frames to return.
            what, timeout: as of `request`.

        Returns:
            the frames of that type in the answer.

        Raises:
            LinkError: this broker has no exchange for QMFv1 answers.
            Others as of `request`.
        """
        address = RequestAddress(V1_EXCHANGE, BROKER) if agent.is_broker and agent.is_qpidd else self._address(agent)

        def encode(number: int) -> bytes:
            if self._v1_refusal is not None:
                refusal = self._v1_refusal
                raise LinkError(refusal.address, refusal.condition, refusal.description)
            return self._encode_request_v1(build(number), address)

        parts = await self._ask_repeatedly(encode, what, agent.name, timeout)
        return [part for part in parts if isinstance(part, expect)]

    async def _ask_repeatedly(
        self, encode: Encode, what: str, agent: str, timeout: float, enough: int = 0
    ) -> list[object]:
        """Send a request; if the broker closes the sending link meanwhile, send it once more.

        qpidd answers a forbidden request by closing the link, and the permitted requests behind it are lost, too
        (QMF2.md 7.2); nothing distinguishes them. So all are sent again, one at a time, and the forbidden one is
        refused again. Only for requests that change nothing at the agent.
        """
        try:
            return await self._ask(encode, what, agent, timeout, enough)
        except LinkError:
            async with self._one_at_a_time:
                return await self._ask(encode, what, agent, timeout, enough)

    async def _ask(self, encode: Encode, what: str, agent: str, timeout: float, enough: int = 0) -> list[object]:
        request, sending = self._begin(what, agent, timeout), None
        request.enough = enough
        try:
            sending = self._start(request, encode, request.id)
            return await request.future
        finally:
            self._leave(request, sending)

    def _begin(self, words: str | Callable[[], str], agent: str, timeout: float) -> Request:
        return self._pending.begin(words, agent, timeout, self._loop or asyncio.get_running_loop())

    def _leave(self, request: Request, sending: asyncio.Task[None] | None) -> None:
        """Nobody waits for a request any more, whether it has ended or not.

        Args:
            sending: the task that sends it, if that takes waiting.
        """
        if sending is None and request.state is RequestState.ANSWERED:
            return
        self._pending.leave(request)
        if sending is not None and request.state is not RequestState.ANSWERED:
            sending.cancel()
        if sending is not None and not sending.done():
            self._sending.keep(sending)  # the answer arrived before the confirmation

    def _start(self, request: Request, encode: Callable[[*Ts], bytes], *args: *Ts) -> asyncio.Task[None] | None:
        """Send a request, in a task if that takes waiting; `encode` makes it of the other arguments."""
        try:
            data = encode(*args)
            if self._bus.try_send(data, functools.partial(self._on_outcome, request)):
                return None
        except (QmfError, ValueError) as error:
            # ValueError: a value that can't be encoded. The caller gets it in the same way as the broker's refusal.
            self._pending.end(request, RequestEvent.LOSS, error)
            return None
        return asyncio.get_running_loop().create_task(self._send(request, data))

    async def _send(self, request: Request, data: bytes) -> None:
        try:
            await self._bus.send(data, confirm=True)
        except (QmfError, ValueError) as error:
            self._on_outcome(request, error)
        else:
            self._on_outcome(request, None)

    def _on_outcome(self, request: Request, error: Exception | None) -> None:
        if error is not None and not request.state.final:
            self._pending.end(request, RequestEvent.LOSS, error)

    # -- messages without answer

    async def send(self, content: Content, agent: Agent | str) -> None:
        """Send a message that has no answer.

        Args:
            content: the message.
            agent: the agent, or the name of one that is not known any more.

        Raises:
            DisconnectedError: no connection.
        """
        address = RequestAddress(self._direct, agent) if isinstance(agent, str) else self._address(agent)
        await self._bus.send(self._encode_request(content, address, None))

    async def locate(self, on_outcome: OutcomeCallback) -> None:
        """Ask all agents to announce themselves, and the connected broker's agent in particular.

        Args:
            on_outcome: called when the broker has accepted or refused the request to all, unless it had to wait.
        """
        request = LocateRequest()
        try:
            await self._bus.send(self._encode_request(request, RequestAddress(self._direct, BROKER), LOCATE_BROKER))
            to_all = self._encode_request(request, RequestAddress(self._topic, LOCATE_KEY), LOCATE_ALL)
            if self._bus.try_send(to_all, on_outcome):
                await asyncio.sleep(0)  # on a bus within this process, its agents answer now, as to `send`
            else:
                await self._bus.send(to_all)
        except DisconnectedError as error:
            log.info("cannot locate agents: %s", error)

    async def locate_again(self, agents: Iterable[Agent]) -> None:
        """Ask some agents to announce themselves, each by itself."""
        try:
            for agent in agents:
                await self._bus.send(self._encode_request(LocateRequest(), self._address(agent), LOCATE_ALL))
        except DisconnectedError as error:
            log.info("cannot locate agents again: %s", error)

    def _address(self, agent: Agent) -> RequestAddress:
        """Where an agent receives requests: the subject that it advertises, else its name (QMF2.md 4.4)."""
        if agent.info.direct_subject:
            return RequestAddress(self._topic, agent.info.direct_subject)
        return RequestAddress(self._direct, agent.name)

    def _encode_request(
        self, content: Content, address: RequestAddress, correlation_id: str | None, ttl: float | None = None
    ) -> bytes:
        return encode_correlated(
            Envelope(
                content=content,
                to=address.exchange,
                subject=address.key,
                reply_to=self._reply_to,
                correlation_id=correlation_id,
                ttl=ttl,
                user_id=self._bus.user,
            )
        )

    def _encode_request_v1(self, frame: Frame, address: RequestAddress) -> bytes:
        """A QMFv1 request; its answer comes on `amq.direct` (QMF2.md 8.3)."""
        message = Message(
            to=address.exchange,
            subject=address.key,
            reply_to=f"{AMQ_DIRECT}/{self.reply_key}",
            content_type="x-application/qmf",
            user_id=None if self._bus.user is None else self._bus.user.encode(),
            body=encode_frames([frame]),
            section=Section.DATA,
        )
        return encode_message(message)

    # -- answers

    def is_pending(self, correlation_id: str | None) -> bool:
        """True when an answer with this correlation id belongs to a pending request."""
        return _number(correlation_id) in self._pending.by_id

    def on_answer(self, envelope: Envelope) -> None:
        """An agent sent an answer, or a part of one."""
        self._add_part(_number(envelope.correlation_id), envelope.content, last=not envelope.partial)

    def on_returned(self, answers: Iterable[Answer]) -> None:
        """Methods have returned: the same as `on_answer`, with the whole answer of each."""
        pending, end = self._pending.by_id, self._pending.end
        for number, outputs, _ in answers:
            request = pending.get(number)
            if request is not None and request.takes_outputs:
                request.parts.append(outputs)
                end(request, RequestEvent.LAST)
            else:
                self._add_part(number, MethodResponse(arguments=outputs), last=True)

    def on_failure(self, correlation_id: str | None, error: QmfError) -> None:
        """An agent answered with an exception, or its answer is not valid."""
        self._refuse(_number(correlation_id), error)

    def answered_v1(self, message: V1Message) -> None:
        """An agent sent QMFv1 frames."""
        for frame in message.frames:
            if isinstance(frame, CommandComplete) and frame.code:
                self._refuse(frame.sequence, RemoteError(frame.text or "refused", frame.code, message.agent))
            elif isinstance(frame, _V1_ANSWERS):
                self._add_part(frame.sequence, frame, last=isinstance(frame, _V1_LAST))
            else:
                log.debug("skipped a %s, which answers nothing", type(frame).__name__)

    def agent_lost(self, agent: str, reason: str) -> None:
        """An agent is gone or has restarted: its pending requests fail."""
        self._pending.lose_agent(agent, lambda request: AgentLost(agent, request.what, reason))

    def _add_part(self, number: int, content: object, *, last: bool) -> None:
        request = self._pending.find(number)
        if request is None:
            return
        request.parts.append(content)
        if last:
            self._pending.end(request, RequestEvent.LAST)
        elif request.enough and request.has_enough(content):
            self._pending.end(request, RequestEvent.ENOUGH)

    def _refuse(self, number: int, error: QmfError) -> None:
        request = self._pending.find(number)
        if request is not None:
            self._pending.end(request, RequestEvent.EXCEPTION, error)


def _expect(part: object, expect: type[C], words: str | Callable[[], str], agent: str) -> C:
    if isinstance(part, expect):
        return part
    what = words if isinstance(words, str) else words()
    raise ProtocolError(f"agent {agent} answered {what} with {type(part).__name__}")


def _time_to_live(timeout: float) -> float | None:
    """How long a call is worth delivering and starting: until its caller gives up."""
    if timeout >= MAX_TIME_TO_LIVE:
        return None
    return timeout if timeout > 0.001 else 0.001


def _number(correlation_id: str | None) -> int:
    """The id of the request that an answer belongs to; 0, which no request has, for any other correlation id."""
    text = correlation_id or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 20 else 0
