"""Jobs: method calls that a client does not wait for, and asks about later. In memory: they end with the server."""

from __future__ import annotations

import asyncio
import enum
import secrets
import time
from collections.abc import Awaitable, Callable

import attrs

from qmf._background_tasks import BackgroundTasks
from qmf._state_table import StateTable
from qmf.errors import QmfError
from qmf.web.problems import Problem, problem_of
from qmf.web.scopes import Caller

#: Seconds for which the result of a job is kept.
KEEP = 3600.0


class JobState(enum.Enum):
    """Where a job is."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class JobEvent(enum.Enum):
    """What happens to a job."""

    RESULT = "result"
    ERROR = "error"
    CANCEL = "cancel"


TRANSITIONS = StateTable(
    "job",
    {
        JobState.RUNNING: {
            JobEvent.RESULT: JobState.DONE,
            JobEvent.ERROR: JobState.FAILED,
            JobEvent.CANCEL: JobState.CANCELLED,
        },
    },
)


@attrs.define(eq=False)
class Job:
    """A job.

    Attributes:
        id: names it; not guessable.
        caller: who began it; nobody else sees it.
        what: the call, for people.
        begun, ended: seconds since 1970; `ended` is None while it runs.
        result: of the call, when it is done.
        problem: why it failed, or None.
    """

    id: str
    caller: Caller
    what: str
    begun: float
    ended: float | None = None
    state: JobState = JobState.RUNNING
    result: object = None
    problem: Problem | None = None
    task: asyncio.Task[None] | None = attrs.field(default=None, repr=False)

    def advance(self, event: JobEvent, now: float) -> None:
        """Go on to the next state."""
        self.state = TRANSITIONS.next(self.state, event, self.id)
        self.ended = now


class Jobs:
    """The jobs of all callers. Belongs to the event loop."""

    def __init__(self, limit: int, clock: Callable[[], float] = time.time) -> None:
        """Begin without jobs.

        Args:
            limit: jobs of one client that run or are kept.
            clock: seconds since 1970.
        """
        self._limit = limit
        self._clock = clock
        self._jobs: dict[str, Job] = {}
        self._tasks = BackgroundTasks()

    def begin(self, caller: Caller, what: str, work: Callable[[], Awaitable[object]]) -> Job:
        """Begin a job.

        Raises:
            Problem: 429, the caller has too many.
        """
        self._forget()
        own = sum(1 for job in self._jobs.values() if job.caller.client == caller.client)
        if own >= self._limit:
            raise Problem(429, f"{caller.client} has {own} jobs already; delete some", headers={"Retry-After": "10"})
        job = Job(secrets.token_urlsafe(16), caller, what, self._clock())
        self._jobs[job.id] = job
        job.task = self._tasks.spawn(self._run(job, work))
        return job

    def of(self, caller: Caller) -> list[Job]:
        """The jobs of a caller, in the order of their begin."""
        self._forget()
        return [job for job in self._jobs.values() if job.caller.client == caller.client]

    def find(self, id: str, caller: Caller) -> Job:
        """A job of a caller.

        Raises:
            Problem: 404, there is none, or not any more.
        """
        self._forget()
        job = self._jobs.get(id)
        if job is None or job.caller.client != caller.client:
            raise Problem(404, f"no job {id!r} (results are kept for {KEEP / 60:g} minutes)")
        return job

    def delete(self, job: Job) -> None:
        """Forget a job; one that runs is no longer waited for, though the agent may carry it out."""
        self._jobs.pop(job.id, None)
        if job.task is not None:
            job.task.cancel()

    async def close(self) -> None:
        """Cancel the jobs that run."""
        await self._tasks.cancel()

    async def _run(self, job: Job, work: Callable[[], Awaitable[object]]) -> None:
        try:
            job.result = await work()
        except Problem as problem:
            job.problem = problem
            job.advance(JobEvent.ERROR, self._clock())
        except QmfError as error:
            job.problem = problem_of(error)
            job.advance(JobEvent.ERROR, self._clock())
        except asyncio.CancelledError:
            job.advance(JobEvent.CANCEL, self._clock())
            raise
        else:
            job.advance(JobEvent.RESULT, self._clock())

    def _forget(self) -> None:
        now = self._clock()
        old = [job.id for job in self._jobs.values() if job.ended is not None and now - job.ended > KEEP]
        for id in old:
            del self._jobs[id]
