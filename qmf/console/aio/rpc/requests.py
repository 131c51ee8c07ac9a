"""Requests: the life of each, from sending to the last part of its answer or to its failure.

The states of a request, and the events that end it::

    PENDING ─┬─ LAST      ▶ ANSWERED   every part has arrived
             ├─ ENOUGH    ▶ ANSWERED   its caller needs no more of it
             ├─ EXCEPTION ▶ REFUSED    the agent answered with an exception
             ├─ LOSS      ▶ LOST       message refused; connection or agent gone
             ├─ DEADLINE  ▶ EXPIRED    no complete answer in time
             └─ CANCEL    ▶ CANCELLED  its caller gave up

An answer may arrive before the broker's confirmation of the request, so that has no state of its own, and neither have
parts of an answer. The states on the right are final: an answer that still comes is counted as late. Ids are never used
twice, so a late answer can't reach another request.

An event that `TRANSITIONS` doesn't list raises `IllegalEvent` and changes nothing.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable

import attrs

from qmf._state_table import StateTable
from qmf.errors import PeerError
from qmf.protocol import ObjectsResponse


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

    PENDING = "pending"
    ANSWERED = "answered"
    REFUSED = "refused"
    LOST = "lost"
    EXPIRED = "expired"
    CANCELLED = "cancelled"

    __hash__ = object.__hash__  # members are equal by identity; Enum's own hash takes five times as long

    @property
    def final(self) -> bool:
        """True when nothing can happen to the request any more."""
        return self is not RequestState.PENDING


class RequestEvent(enum.Enum):
    """What can end a request."""

    LAST = "last"
    ENOUGH = "enough"
    EXCEPTION = "exception"
    LOSS = "loss"
    DEADLINE = "deadline"
    CANCEL = "cancel"

    __hash__ = object.__hash__  # as above


TRANSITIONS = StateTable(
    "request",
    {
        RequestState.PENDING: {
            RequestEvent.LAST: RequestState.ANSWERED,
            RequestEvent.ENOUGH: RequestState.ANSWERED,
            RequestEvent.EXCEPTION: RequestState.REFUSED,
            RequestEvent.LOSS: RequestState.LOST,
            RequestEvent.DEADLINE: RequestState.EXPIRED,
            RequestEvent.CANCEL: RequestState.CANCELLED,
        },
    },
)
_ENDS = TRANSITIONS.rows[RequestState.PENDING]


@attrs.define(eq=False)
class Request:
    """One pending request.

    Attributes:
        id: correlation id; in QMFv1 the sequence number.
        words: the request for messages, or what makes them.
        agent: name of the agent.
        timeout: seconds for the whole request.
        deadline: when they end, by the loop's clock.
        future: gets the parts of the answer, or the error.
        state: where it is in its life.
        parts: the parts of the answer so far.
        enough: how many objects its caller needs; 0 for the whole answer.
        takes_outputs: of an answer that is the outputs of a method, these alone may be the part.
    """

    id: int
    words: str | Callable[[], str]
    agent: str
    timeout: float
    deadline: float
    future: asyncio.Future[list[object]]
    state: RequestState = RequestState.PENDING
    parts: list[object] = attrs.field(factory=list)
    takes_outputs: bool = False
    enough: int = 0
    _objects: int = 0

    @property
    def what(self) -> str:
        """The request in words, for messages."""
        return self.words if isinstance(self.words, str) else self.words()

    def has_enough(self, part: object) -> bool:
        """True if the parts of the answer have as many objects as its caller needs; called once for each part."""
        self._objects += len(part.objects) if isinstance(part, ObjectsResponse) else 0
        return self._objects >= self.enough

    def end(self, event: RequestEvent) -> RequestState:
        """Go to the state that the table lists for an event; returns it.

        Raises:
            IllegalEvent: the table has no such transition; the state is unchanged.
        """
        pending = self.state is RequestState.PENDING
        self.state = _ENDS[event] if pending else TRANSITIONS.next(self.state, event, self.what)
        return self.state


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
