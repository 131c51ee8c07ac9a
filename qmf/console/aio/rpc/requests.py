"""The life of a request: from sending to the last part of the answer, or to the reason why there is none.

The states of a request, and what moves it on::

              SENT                PART
    SENDING ───────▶ WAITING ───────────▶ COLLECTING ◀─┐ PART
       │                │                     │  └─────┘
       └────────────────┴──────────┬──────────┘
                                   ├── LAST      ▶ ANSWERED   every part is here
                                   ├── EXCEPTION ▶ REFUSED    the agent said no
                                   ├── LOSS      ▶ LOST       message refused; connection or agent gone
                                   ├── DEADLINE  ▶ EXPIRED    nobody answered in time
                                   └── CANCEL    ▶ CANCELLED  nobody waits for it any more

An answer may overtake the broker's confirmation that it took the request, so parts are welcome while SENDING, and SENT
leaves COLLECTING as it is. The five states on the right are final: the request has left the table by then, and an
answer that still comes is counted as late. Ids are never used twice, so a late answer can't reach another request.

An event that `TRANSITIONS` doesn't list raises `IllegalRequestEvent` and changes nothing. This module sends nothing
itself and doesn't look into answers.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType

import attrs

from qmf.bus.base import OutcomeCallback
from qmf.console.aio.rpc.errors import AgentLost
from qmf.errors import NetworkError, QmfError, RequestTimeout

log = logging.getLogger("qmf.console")


class RequestState(enum.Enum):
    """Where a request is in its life."""

    SENDING = "sending"
    WAITING = "waiting"
    COLLECTING = "collecting"
    ANSWERED = "answered"
    REFUSED = "refused"
    LOST = "lost"
    EXPIRED = "expired"
    CANCELLED = "cancelled"

    __hash__ = object.__hash__  # a member is equal to itself alone; that of Enum takes five times as long

    @property
    def final(self) -> bool:
        """True when nothing can happen to the request any more."""
        return self not in TRANSITIONS


class RequestEvent(enum.Enum):
    """What can happen to a request."""

    SENT = "sent"
    PART = "part"
    LAST = "last"
    EXCEPTION = "exception"
    LOSS = "loss"
    DEADLINE = "deadline"
    CANCEL = "cancel"

    __hash__ = object.__hash__  # as above


_ENDS = {
    RequestEvent.LAST: RequestState.ANSWERED,
    RequestEvent.EXCEPTION: RequestState.REFUSED,
    RequestEvent.LOSS: RequestState.LOST,
    RequestEvent.DEADLINE: RequestState.EXPIRED,
    RequestEvent.CANCEL: RequestState.CANCELLED,
}

TRANSITIONS: Mapping[RequestState, Mapping[RequestEvent, RequestState]] = MappingProxyType(
    {
        RequestState.SENDING: {
            **_ENDS,
            RequestEvent.SENT: RequestState.WAITING,
            RequestEvent.PART: RequestState.COLLECTING,
        },
        RequestState.WAITING: {**_ENDS, RequestEvent.PART: RequestState.COLLECTING},
        RequestState.COLLECTING: {
            **_ENDS,
            RequestEvent.SENT: RequestState.COLLECTING,
            RequestEvent.PART: RequestState.COLLECTING,
        },
    }
)


class IllegalRequestEvent(RuntimeError):
    """A step that a request's state doesn't allow: a bug in the console."""


@attrs.define(eq=False)
class Request:
    """One question on its way.

    Attributes:
        id: correlation id, in QMFv1 the sequence number.
        what: what is asked, for messages.
        agent: name of the agent asked, or None for the broker's QMFv1 side.
        seconds: how long its asker waits.
        future: gets the parts of the answer, or the error.
    """

    id: int
    what: str
    agent: str | None
    seconds: float
    future: asyncio.Future[list[object]]
    state: RequestState = RequestState.SENDING
    parts: list[object] = attrs.field(factory=list)

    def advance(self, step: RequestEvent) -> None:
        """Take one step of the table.

        Raises:
            IllegalRequestEvent: the table has no such step; the state is unchanged.
        """
        following = TRANSITIONS.get(self.state, {}).get(step)
        if following is None:
            raise IllegalRequestEvent(f"request {self.id} ({self.what}) is {self.state.value}: no step {step.value}")
        self.state = following


@attrs.frozen
class RequestCounts:
    """What became of a client's requests so far.

    Attributes:
        asked: requests started.
        answered, refused, lost, expired, cancelled: how they ended.
        late: answers that came when nobody waited any more, or that belong to nobody.
    """

    asked: int
    answered: int
    refused: int
    lost: int
    expired: int
    cancelled: int
    late: int


class PendingRequests:
    """The outstanding requests of one client."""

    def __init__(self) -> None:
        self._outstanding: dict[int, Request] = {}
        self._sending: set[asyncio.Task[None]] = set()
        self._next = 1
        self._ended: dict[RequestState, int] = {}
        self._late = 0

    def __len__(self) -> int:
        return len(self._outstanding)

    def __contains__(self, number: object) -> bool:
        """True while somebody waits for the answer with this id."""
        return number in self._outstanding

    @property
    def counts(self) -> RequestCounts:
        """What became of the requests so far."""
        ended = {state: self._ended.get(state, 0) for state in RequestState if state.final}
        return RequestCounts(
            asked=self._next - 1,
            answered=ended[RequestState.ANSWERED],
            refused=ended[RequestState.REFUSED],
            lost=ended[RequestState.LOST],
            expired=ended[RequestState.EXPIRED],
            cancelled=ended[RequestState.CANCELLED],
            late=self._late,
        )

    async def ask(
        self,
        send: Callable[[int], Awaitable[None]],
        *,
        what: str,
        agent: str | None,
        timeout: float,
        post: Callable[[int, OutcomeCallback], bool] | None = None,
    ) -> list[object]:
        """Send a request and wait for its whole answer.

        Args:
            send: sends the message with the given id; returns when the broker has taken it.
            post: tries the same without waiting, as `Bus.try_send`; saves a task.
            what: what is asked, for messages.
            agent: who is asked, or None.
            timeout: seconds for everything, sending included.

        Returns:
            the parts of the answer, in order of arrival.

        Raises:
            RequestTimeout: not in time.
            NetworkError: the message was refused, or the connection went away.
            AgentLost: the agent went away or restarted.
            RemoteError: the agent answered with an exception.

        Cancelling forgets the request; the agent may have carried it out.
        """
        loop = asyncio.get_running_loop()
        request = Request(self._next, what, agent, timeout, loop.create_future())
        self._next += 1
        self._outstanding[request.id] = request
        timer = loop.call_later(timeout, self._expire, request)
        sending: asyncio.Task[None] | None = None
        try:
            if post is None or not self._posted(request, post):
                sending = loop.create_task(self._send(request, send))
            return await request.future
        finally:
            timer.cancel()
            if not request.state.final:
                self._end(request, RequestEvent.CANCEL)
            if sending is not None and request.state is not RequestState.ANSWERED:
                sending.cancel()
            if sending is not None and not sending.done():
                # The answer overtook the confirmation. Nothing but the loop's weak reference would keep the task.
                self._sending.add(sending)
                sending.add_done_callback(self._sending.discard)
            if request.future.done() and not request.future.cancelled():
                request.future.exception()  # read: the asker may have been cancelled in the same moment

    def part(self, number: int, content: object, *, last: bool) -> None:
        """Take one part of an answer; `last` when no more follow."""
        request = self._take(number)
        if request is None:
            return
        request.parts.append(content)
        if last:
            self._end(request, RequestEvent.LAST)
        else:
            request.advance(RequestEvent.PART)

    def refuse(self, number: int, error: QmfError) -> None:
        """End a request with the exception that its agent answered."""
        request = self._take(number)
        if request is not None:
            self._end(request, RequestEvent.EXCEPTION, error)

    def lose_all(self, error: QmfError) -> None:
        """End every request: the connection is gone."""
        for request in list(self._outstanding.values()):
            self._end(request, RequestEvent.LOSS, error)

    def lose_agent(self, agent: str, reason: str) -> None:
        """End the requests to one agent: it is gone, or is another one now."""
        for request in [item for item in self._outstanding.values() if item.agent == agent]:
            self._end(request, RequestEvent.LOSS, AgentLost(agent, request.what, reason))

    def agents(self) -> Iterable[str]:
        """Names of the agents that have not answered yet."""
        return {request.agent for request in self._outstanding.values() if request.agent}

    def _take(self, number: int) -> Request | None:
        request = self._outstanding.get(number)
        if request is None:
            self._late += 1
            log.debug("late answer to request %s", number)
        return request

    def _posted(self, request: Request, post: Callable[[int, OutcomeCallback], bool]) -> bool:
        try:
            return post(request.id, functools.partial(self._told, request))
        except (QmfError, ValueError) as error:
            self._end(request, RequestEvent.LOSS, error)
            return True

    def _told(self, request: Request, error: NetworkError | None) -> None:
        if request.state.final:
            return
        if error is None:
            request.advance(RequestEvent.SENT)
        else:
            self._end(request, RequestEvent.LOSS, error)

    async def _send(self, request: Request, send: Callable[[int], Awaitable[None]]) -> None:
        try:
            await send(request.id)
        except (QmfError, ValueError) as error:
            # ValueError: a value that no encoding holds. It reaches the caller like a refusal by the broker does.
            if not request.state.final:
                self._end(request, RequestEvent.LOSS, error)
        else:
            if not request.state.final:
                request.advance(RequestEvent.SENT)

    def _expire(self, request: Request) -> None:
        self._end(request, RequestEvent.DEADLINE, RequestTimeout(request.what, request.agent, request.seconds))

    def _end(self, request: Request, step: RequestEvent, error: Exception | None = None) -> None:
        request.advance(step)
        self._ended[request.state] = self._ended.get(request.state, 0) + 1
        del self._outstanding[request.id]
        if request.future.done():
            return
        if error is None:
            request.future.set_result(request.parts)
        else:
            request.future.set_exception(error)
