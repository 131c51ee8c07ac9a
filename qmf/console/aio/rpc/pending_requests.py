"""The requests that wait for an answer: their numbers, their deadlines, and how they ended."""

from __future__ import annotations

import asyncio
import collections
import logging
import math
from collections.abc import Callable, Mapping

from qmf.console.aio.rpc.requests import Request, RequestCounts, RequestEvent, RequestState
from qmf.errors import RequestTimeout

log = logging.getLogger("qmf.console")


class PendingRequests:
    """The requests of one channel.

    Attributes:
        by_id: those that have not ended.
    """

    def __init__(self) -> None:
        self._requests: dict[int, Request] = {}
        self.by_id: Mapping[int, Request] = self._requests
        #: The same by agent: one that is gone must not cost a look at the requests to all others.
        self._of_agent: dict[str, dict[int, Request]] = {}
        self._next_id = 1
        self._ended: collections.Counter[RequestState] = collections.Counter()
        self._late = 0
        #: One timer for all requests, due at the earliest deadline: one for each would cost more than sending it. It is
        #: left when requests end, and finds nothing then.
        self._timer: asyncio.TimerHandle | None = None
        self._due = math.inf

    @property
    def counts(self) -> RequestCounts:
        """How the requests ended so far."""
        ended = self._ended
        return RequestCounts(
            asked=self._next_id - 1,
            answered=ended[RequestState.ANSWERED],
            refused=ended[RequestState.REFUSED],
            lost=ended[RequestState.LOST],
            expired=ended[RequestState.EXPIRED],
            cancelled=ended[RequestState.CANCELLED],
            late=self._late,
        )

    def begin(
        self, words: str | Callable[[], str], agent: str, timeout: float, loop: asyncio.AbstractEventLoop
    ) -> Request:
        """A request that is waited for until `leave`.

        Args:
            words: the request in words, for messages.
            agent: name of the agent.
            timeout: seconds until it ends by itself.
            loop: the one that runs.
        """
        deadline = loop.time() + timeout
        number = self._next_id
        request = Request(number, words, agent, timeout, deadline, loop.create_future())
        self._next_id = number + 1
        self._requests[number] = request
        self._of_agent.setdefault(agent, {})[number] = request
        if deadline < self._due:
            self._start_timer(deadline, loop)
        return request

    def leave(self, request: Request) -> None:
        """Nobody waits for a request any more, whether it has ended or not."""
        if not request.state.final:
            self.end(request, RequestEvent.CANCEL)
        if request.future.done() and not request.future.cancelled():
            request.future.exception()  # read it: the caller may have been cancelled in the same moment

    def find(self, number: int) -> Request | None:
        """The request that an answer belongs to; None, which is counted, if it has ended."""
        request = self._requests.get(number)
        if request is None:
            self._late += 1
            log.debug("late answer to request %s", number)
        return request

    def end(self, request: Request, event: RequestEvent, error: Exception | None = None) -> None:
        """A request ends: with its answer, or an error."""
        self._ended[request.end(event)] += 1
        del self._requests[request.id]
        of_agent = self._of_agent[request.agent]
        del of_agent[request.id]
        if not of_agent:
            del self._of_agent[request.agent]
        future = request.future
        if future.done():
            return
        if error is None:
            future.set_result(request.parts)
        else:
            future.set_exception(error)

    def lose_all(self, make_error: Callable[[], Exception]) -> None:
        """The connection is lost."""
        for request in list(self._requests.values()):
            self.end(request, RequestEvent.LOSS, make_error())
        self._stop_timer()

    def lose_agent(self, agent: str, make_error: Callable[[Request], Exception]) -> None:
        """An agent is gone."""
        for request in list(self._of_agent.get(agent, {}).values()):
            self.end(request, RequestEvent.LOSS, make_error(request))

    def _start_timer(self, deadline: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._due = loop.call_at(deadline, self._expire, loop), deadline

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer, self._due = None, math.inf

    def _expire(self, loop: asyncio.AbstractEventLoop) -> None:
        """End the requests whose time is up."""
        self._stop_timer()
        now = loop.time()
        for request in [item for item in self._requests.values() if item.deadline <= now]:
            self.end(request, RequestEvent.DEADLINE, RequestTimeout(request.what, request.agent, request.timeout))
        if self._requests:
            self._start_timer(min(item.deadline for item in self._requests.values()), loop)
