"""Pending requests: the life of each, from sending to the last part of its answer or to its failure.

The states of a request, and the events that move it on::

              SENT                PART
    SENDING ───────▶ WAITING ───────────▶ COLLECTING ◀─┐ PART
       │                │                     │  └─────┘
       └────────────────┴──────────┬──────────┘
                                   ├── LAST      ▶ ANSWERED   every part has arrived
                                   ├── EXCEPTION ▶ REFUSED    the agent answered with an exception
                                   ├── LOSS      ▶ LOST       message refused; connection or agent gone
                                   ├── DEADLINE  ▶ EXPIRED    no complete answer in time
                                   └── CANCEL    ▶ CANCELLED  its caller gave up

An answer may arrive before the broker's confirmation of the request, so parts are accepted while SENDING, and SENT
leaves COLLECTING as it is. The five states on the right are final: the request has left the table by then, and an
answer that still comes is counted as late. Ids are never used twice, so a late answer can't reach another request.

An event that `TRANSITIONS` doesn't list raises `IllegalEvent` and changes nothing. This module sends nothing
itself and doesn't look into answers.
"""

from __future__ import annotations

import asyncio
import enum
import functools
import logging
from collections.abc import Awaitable, Callable

import attrs

from qmf._state_table import StateTable
from qmf.bus.base import OutcomeCallback
from qmf.console.aio.tasks import BackgroundTasks
from qmf.errors import NetworkError, PeerError, QmfError, RequestTimeout

log = logging.getLogger("qmf.console")


class AgentLost(PeerError):
    """The agent went away, or restarted, before it answered a request.

    Whether it carried the request out is unknown.

    Attributes:
        agent: its name.
        what: the request, e.g. ``method echo of broker``.
        reason: what happened to the agent, e.g. ``restarted (epoch 3, then 4)``.
    """

    def __init__(self, agent: str, what: str, reason: str) -> None:
        self.agent = agent
        self.what = what
        self.reason = reason
        super().__init__(agent, what, reason)

    def __str__(self) -> str:
        return f"agent {self.agent} {self.reason} before it answered {self.what}"


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

    __hash__ = object.__hash__  # members are equal by identity; Enum's own hash takes five times as long

    @property
    def final(self) -> bool:
        """True when nothing can happen to the request any more."""
        return self not in TRANSITIONS.rows


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

TRANSITIONS = StateTable(
    "request",
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
    },
)


@attrs.define(eq=False)
class Request:
    """One pending request.

    Attributes:
        id: correlation id; in QMFv1 the sequence number.
        what: the request in words, for messages.
        agent: name of the agent, or None for the broker's QMFv1 side.
        timeout: seconds for the whole request.
        future: gets the parts of the answer, or the error.
        state: where it is in its life.
        parts: the parts of the answer so far.
    """

    id: int
    what: str
    agent: str | None
    timeout: float
    future: asyncio.Future[list[object]]
    state: RequestState = RequestState.SENDING
    parts: list[object] = attrs.field(factory=list)

    def advance(self, event: RequestEvent) -> None:
        """Go to the state that the table lists for an event.

        Raises:
            IllegalEvent: the table has no such transition; the state is unchanged.
        """
        self.state = TRANSITIONS.next(self.state, event, self.what)


@attrs.frozen
class RequestCounts:
    """How the requests of a client ended so far.

    Attributes:
        asked: requests started.
        answered, refused, lost, expired, cancelled: how they ended.
        late: answers that arrived after their request had ended, or that belong to no request.
    """

    asked: int
    answered: int
    refused: int
    lost: int
    expired: int
    cancelled: int
    late: int

    @property
    def pending(self) -> int:
        """Requests that wait for their answer."""
        return self.asked - self.answered - self.refused - self.lost - self.expired - self.cancelled


class PendingRequests:
    """The pending requests of one client."""

    def __init__(self) -> None:
        self._pending: dict[int, Request] = {}
        self._sending = BackgroundTasks()
        self._next = 1
        self._ended: dict[RequestState, int] = {}
        self._late = 0

    def __len__(self) -> int:
        return len(self._pending)

    def __contains__(self, number: object) -> bool:
        """True while the request with this id is pending."""
        return number in self._pending

    @property
    def counts(self) -> RequestCounts:
        """How the requests ended so far."""
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
            send: sends the message with the given id; returns when the broker has accepted it.
            post: tries the same without waiting, as `Bus.try_send`; saves a task.
            what: the request in words, for messages.
            agent: name of the agent, or None.
            timeout: seconds for everything, sending included.

        Returns:
            the parts of the answer, in order of arrival.

        Raises:
            RequestTimeout: no complete answer in time.
            NetworkError: the broker refused the message, or the connection was lost.
            AgentLost: the agent went away or restarted.
            RemoteError: the agent answered with an exception.

        Cancelling forgets the request; the agent may have carried it out.
        """
        loop = asyncio.get_running_loop()
        request = Request(self._next, what, agent, timeout, loop.create_future())
        self._next += 1
        self._pending[request.id] = request
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
                self._sending.keep(sending)  # the answer arrived before the confirmation
            if request.future.done() and not request.future.cancelled():
                request.future.exception()  # read it: the caller may have been cancelled in the same moment

    def part(self, number: int, content: object, *, last: bool) -> None:
        """Add one part of an answer; `last` when no more follow."""
        request = self._find(number)
        if request is None:
            return
        request.parts.append(content)
        if last:
            self._end(request, RequestEvent.LAST)
        else:
            request.advance(RequestEvent.PART)

    def refuse(self, number: int, error: QmfError) -> None:
        """End a request with the exception that its agent answered."""
        request = self._find(number)
        if request is not None:
            self._end(request, RequestEvent.EXCEPTION, error)

    def lose_all(self, error: QmfError) -> None:
        """End every request: the connection is lost."""
        for request in list(self._pending.values()):
            self._end(request, RequestEvent.LOSS, error)

    def lose_agent(self, agent: str, reason: str) -> None:
        """End the requests to one agent, which is gone or has restarted."""
        for request in [item for item in self._pending.values() if item.agent == agent]:
            self._end(request, RequestEvent.LOSS, AgentLost(agent, request.what, reason))

    def _find(self, number: int) -> Request | None:
        request = self._pending.get(number)
        if request is None:
            self._late += 1
            log.debug("late answer to request %s", number)
        return request

    def _posted(self, request: Request, post: Callable[[int, OutcomeCallback], bool]) -> bool:
        try:
            return post(request.id, functools.partial(self._settled, request))
        except (QmfError, ValueError) as error:
            self._end(request, RequestEvent.LOSS, error)
            return True

    def _settled(self, request: Request, error: NetworkError | None) -> None:
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
            # ValueError: a value that can't be encoded. The caller gets it in the same way as the broker's refusal.
            if not request.state.final:
                self._end(request, RequestEvent.LOSS, error)
        else:
            if not request.state.final:
                request.advance(RequestEvent.SENT)

    def _expire(self, request: Request) -> None:
        self._end(request, RequestEvent.DEADLINE, RequestTimeout(request.what, request.agent, request.timeout))

    def _end(self, request: Request, event: RequestEvent, error: Exception | None = None) -> None:
        request.advance(event)
        self._ended[request.state] = self._ended.get(request.state, 0) + 1
        del self._pending[request.id]
        if request.future.done():
            return
        if error is None:
            request.future.set_result(request.parts)
        else:
            request.future.set_exception(error)
