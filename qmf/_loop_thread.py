"""The background thread that runs an asynchronous core for a synchronous API.

The thread is a daemon: a program that does not close its session or connection still ends.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import functools
import threading
from collections.abc import Callable, Coroutine
from typing import Any, Concatenate, Generic, ParamSpec, Protocol, TypeVar, runtime_checkable

from qmf._event_loop import run
from qmf.errors import CallerError

T = TypeVar("T")
P = ParamSpec("P")

_CLOSED = "the session was closed during the call"

# A signal that arrives just before a thread begins to wait, or on another thread, does not end the wait: Python runs
# its handler only between instructions of the main thread. So that thread wakes this often, in seconds.
_SIGNAL_INTERVAL = 0.2


class _Call(Generic[T]):
    """One call of a coroutine on the loop."""

    def __init__(self, work: Coroutine[Any, Any, T]) -> None:
        self.future: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.loop: asyncio.AbstractEventLoop | None = None
        self._work = work
        self._task: asyncio.Task[T] | None = None
        self._abandoned = False

    def submit(self) -> bool:
        """On the caller's thread: have the loop start it; False when the loop is closed."""
        return self._call(self._start)

    def wait(self) -> T:
        """On the caller's thread: wait for the result."""
        while True:
            try:
                return self.future.result(_SIGNAL_INTERVAL)
            except TimeoutError:
                if self.future.done():  # the call's own error, or its result in this moment
                    return self.future.result()

    def abandon(self) -> None:
        """On the caller's thread: cancel it."""
        if not self._call(self._cancel):
            self._work.close()

    def _call(self, callback: Callable[[], None]) -> bool:
        try:
            if self.loop is not None:
                self.loop.call_soon_threadsafe(callback)
        except RuntimeError:  # the loop is closed
            return False
        return self.loop is not None

    def _start(self) -> None:
        if not self._abandoned:
            self._task = asyncio.get_running_loop().create_task(self._work)
            self._task.add_done_callback(self._finish)

    def _cancel(self) -> None:
        self._abandoned = True
        if self._task is not None:
            self._task.cancel()
        else:
            self._work.close()

    def _finish(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.future.cancel()
        elif (error := task.exception()) is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(task.result())


@runtime_checkable
class PostingLoop(Protocol):
    """A loop with a way to call something that is cheaper than `call_soon_threadsafe`."""

    def post(self, callback: Callable[[], object]) -> None:
        """Call something on the loop's thread soon; a `RuntimeError` if the loop is closed."""


class LoopThread:
    """One event loop on one thread, started by the first `run`.

    Attributes:
        ident: identity of the thread (`threading.get_ident`); None while there is none.
    """

    def __init__(
        self,
        name: str,
        advice: str = "call it from another thread, or use the asyncio API",
        special_loop: Callable[[], asyncio.AbstractEventLoop | None] = lambda: None,
    ) -> None:
        """Start nothing yet: the thread begins with the first coroutine.

        Args:
            name: of the thread.
            advice: ends the message of the error for a blocking call on the loop's own thread.
            special_loop: makes the event loop; None for the one of `qmf._event_loop`.
        """
        self._name = name
        self._advice = advice
        self._special_loop = special_loop
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self.ident: int | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._post: Callable[[Callable[[], object]], object] | None = None
        self._stop: asyncio.Event | None = None
        self._calls: set[_Call[Any]] = set()

    @property
    def running(self) -> bool:
        """True between the first `run` and `stop`."""
        return self._thread is not None

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result.

        May be called from any thread but the loop's own. If the wait is interrupted, as by Ctrl-C, the coroutine is
        cancelled, and the loop stays usable.

        Raises:
            CallerError: called on the loop's thread, where it would wait for itself; or the session was closed.
            Exception: any error that the coroutine raises.
        """
        if threading.current_thread() is self._thread:
            work.close()
            raise CallerError(f"blocking call on the event loop of {self._name}; {self._advice}")
        call = _Call(work)
        self._calls.add(call)
        try:
            # Inside the `try`, so that an interrupt from here on cancels the call.
            call.loop = self._start()
            if not call.submit():
                raise CallerError(_CLOSED)
            return call.wait()
        except concurrent.futures.CancelledError as error:
            raise CallerError(_CLOSED) from error
        finally:
            self._calls.discard(call)
            if not call.future.done():
                call.abandon()

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        """Have the loop call something soon, without waiting for it. May be called from any thread.

        Raises:
            CallerError: the loop is not running.
        """
        try:
            if self._post is None:
                raise RuntimeError
            self._post(functools.partial(callback, *args) if args else callback)
        except RuntimeError:
            raise CallerError(_CLOSED) from None

    def stop(self) -> None:
        """Cancel everything on the loop and end the thread. A later `run` starts a new one."""
        with self._lock:
            thread, self._thread, self.ident = self._thread, None, None
            loop, stop = self._loop, self._stop
        if thread is None or loop is None or stop is None:
            return
        loop.call_soon_threadsafe(stop.set)
        if thread is not threading.current_thread():
            thread.join()
            for call in list(self._calls):
                if call.loop is loop:
                    call.future.cancel()  # submitted too late to be started

    def _start(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._thread is None:
                ready = threading.Event()
                self._thread = threading.Thread(target=self._main, args=(ready,), name=self._name, daemon=True)
                self._thread.start()
                ready.wait()
                self.ident = self._thread.ident
            assert self._loop is not None
            return self._loop

    def _main(self, ready: threading.Event) -> None:
        run(self._serve(ready), self._special_loop)

    async def _serve(self, ready: threading.Event) -> None:
        self._loop = loop = asyncio.get_running_loop()
        self._post = loop.post if isinstance(loop, PostingLoop) else loop.call_soon_threadsafe
        stop = self._stop = asyncio.Event()
        ready.set()
        await stop.wait()


class HasLoop(Protocol):
    """What has blocking methods, and a loop on which they run."""

    _loop: LoopThread


Owner = TypeVar("Owner", bound=HasLoop)


def blocking(
    method: Callable[Concatenate[Owner, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Owner, P], T]:
    """Make a method that blocks of a coroutine: it runs that on the loop of its object, as `LoopThread.run` does.

    Type checkers and `help` see the arguments of the coroutine.
    """

    @functools.wraps(method)
    def wrapper(self: Owner, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return self._loop.run(method(self, *args, **kwargs))

    return wrapper
