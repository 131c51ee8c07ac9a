"""An agent for programs without an event loop: it gets one, in a thread of its own."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TYPE_CHECKING, Self

from qmf.errors import CallerError

if TYPE_CHECKING:
    from qmf.agent.agent import Agent


class AgentThread:
    """A running agent in a thread. The thread is a daemon: a program that forgets to close it still ends.

    Attributes:
        agent: the agent. Objects may be added, changed and removed, and events raised, from any thread: none of it
            waits for the network.
    """

    agent: Agent

    def __init__(self, make: Callable[[], Agent], timeout: float) -> None:
        """For `Agent.run_in_thread`."""
        self._make = make
        self._timeout = timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._started: concurrent.futures.Future[Agent] = concurrent.futures.Future()
        self._thread = threading.Thread(target=self._main, name="qmf-agent", daemon=True)
        self._thread.start()
        try:
            self.agent = self._started.result()
        except BaseException:
            # The error is the thread's own, which ends with it, or an interrupt of the caller, who wants no agent then.
            self.close()
            raise

    def close(self) -> None:
        """Close the agent and end the thread; returns when both are done. A second call does nothing.

        Raises:
            CallerError: called by a method of an object, in the very thread that has to end.
        """
        if threading.current_thread() is self._thread:
            raise CallerError("an agent in a thread cannot be closed by that thread")
        loop, stop = self._loop, self._stop
        if loop is not None and stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the thread has ended
                loop.call_soon_threadsafe(stop.set)
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _main(self) -> None:
        try:
            with asyncio.Runner() as runner:
                runner.run(self._serve())
        except BaseException as error:  # noqa: BLE001  # raised again in the thread that waits for it
            if not self._started.done():
                self._started.set_exception(error)

    async def _serve(self) -> None:
        self._stop = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        agent = self._make()
        start = asyncio.ensure_future(agent.start(self._timeout))
        stopped = asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait((start, stopped), return_when=asyncio.FIRST_COMPLETED)
            if start.done():
                start.result()
                self._started.set_result(agent)
                await stopped
        finally:
            start.cancel()
            stopped.cancel()
            await asyncio.gather(start, return_exceptions=True)
            await agent.close()


def in_thread(make: Callable[[], Agent], timeout: float) -> AgentThread:
    """Start an agent in a thread; see `Agent.run_in_thread`."""
    return AgentThread(make, timeout)
