"""The runner of method calls and property changes: a few at a time, with a time limit, while their callers wait.

A call is not started when its caller has given up. Functions that are not ``async`` run on the event loop, which can do
nothing else meanwhile, or on threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from qmf.agent.request_errors import MethodError, RequestRefused, one_line
from qmf.protocol import ErrorCode

_log = logging.getLogger("qmf.agent")

#: Seconds for which a function may keep the event loop from everything else without a warning.
BLOCKING = 0.1


class CallExpired(RequestRefused):
    """The caller gave up before the call was started."""


class CallRunner:
    """Runs calls for one agent; belongs to the event loop's thread."""

    def __init__(self, limit: int, timeout: float | None, *, threads: bool = False) -> None:
        """Set up.

        Args:
            limit: calls that run at the same time. A call that runs beyond its time limit counts until it ends.
            timeout: seconds for one call, from the request on, or None.
            threads: run functions that are not ``async`` on threads.
        """
        self._slots = asyncio.Semaphore(limit)
        self._timeout = timeout
        self._threads = ThreadPoolExecutor(limit, thread_name_prefix="qmf-agent-call") if threads else None
        self._longest: dict[str, float] = {}

    def close(self) -> None:
        """Start nothing more on threads; does not wait for what runs there."""
        if self._threads is not None:
            self._threads.shutdown(wait=False, cancel_futures=True)

    async def run(self, where: str, function: Callable[[], Any | Awaitable[Any]], expires: float | None = None) -> Any:
        """Call a function and return its result, within the time limit.

        A function that awaits is cancelled at the time limit. Any other function cannot be interrupted: its result is
        dropped, and logged.

        Args:
            where: ``Class.method``, for errors and logs.
            expires: the time of the loop until which the caller waits, or None.

        Raises:
            CallExpired: the caller has given up; the function was not called.
            RequestRefused: it raised an error, was cancelled, or took too long.
        """
        loop = asyncio.get_running_loop()
        begin = loop.time()
        task: asyncio.Future[Any]
        if self._slots.locked():
            task = asyncio.ensure_future(self._run_later(where, function, expires))
        else:
            # Most methods return at once: a task for each would be most of the cost of a call.
            _check_expiry(where, expires, begin)
            await self._slots.acquire()
            task = self._start(where, function)
        if not task.done():
            try:
                await asyncio.wait((task,), timeout=self._timeout)
            except asyncio.CancelledError as error:
                task.cancel()
                task.add_done_callback(lambda task: _log_late(where, task))
                raise RequestRefused(ErrorCode.EXCEPTION, f"{where} was cancelled") from error
        # A function that blocked the loop has ended by now, but too late.
        if self._timeout is not None and (not task.done() or loop.time() - begin > self._timeout):
            task.cancel()
            task.add_done_callback(lambda task: _log_late(where, task))
            raise RequestRefused(ErrorCode.EXCEPTION, f"{where} took longer than {self._timeout:g} s")
        return _outcome(where, task)

    def _start(self, where: str, function: Callable[[], Any | Awaitable[Any]]) -> asyncio.Future[Any]:
        """Call a function that has a slot, which is free again in the end."""
        if self._threads is None or inspect.iscoroutinefunction(function):
            return self._run_now(where, function)
        return self._run_on_thread(where, function, self._threads)

    def _run_now(self, where: str, function: Callable[[], Any | Awaitable[Any]]) -> asyncio.Future[Any]:
        """Call a function on the loop; the future is done unless the function awaits."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()
        begin = loop.time()
        try:
            result = function()
            if inspect.isawaitable(result):
                done = asyncio.ensure_future(result)
            else:
                done.set_result(result)
        except asyncio.CancelledError:
            done.cancel()
        except StopIteration as error:
            # As a coroutine does it: futures do not accept StopIteration.
            done.set_exception(RuntimeError(f"the function raised StopIteration: {error}"))
        except Exception as error:  # noqa: BLE001  # `_outcome` turns it into an answer
            done.set_exception(error)
        finally:
            if (took := loop.time() - begin) >= BLOCKING:
                self._warn_blocking(where, took)
            if done.done():
                self._slots.release()
            else:
                done.add_done_callback(lambda _: self._slots.release())
        return done

    def _run_on_thread(
        self, where: str, function: Callable[[], Any | Awaitable[Any]], threads: ThreadPoolExecutor
    ) -> asyncio.Future[Any]:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Any] = loop.create_future()

        def finish(work: Future[Any] | asyncio.Future[Any]) -> None:
            result = None if work.cancelled() or work.exception() is not None else work.result()
            if inspect.isawaitable(result):
                # A function that makes something to await: that belongs to the loop.
                awaited = asyncio.ensure_future(result)
                awaited.add_done_callback(finish)
                done.add_done_callback(lambda done: awaited.cancel() if done.cancelled() else None)
                return
            self._slots.release()
            if done.cancelled():
                _log.warning("%s ended after its time limit; its result is dropped", where)
            elif work.cancelled():
                done.cancel()
            elif (error := work.exception()) is not None:
                done.set_exception(RuntimeError(str(error)) if isinstance(error, StopIteration) else error)
            else:
                done.set_result(result)

        def on_finished(work: Future[Any]) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended, and the agent with it
                loop.call_soon_threadsafe(finish, work)

        threads.submit(contextvars.copy_context().run, function).add_done_callback(on_finished)
        return done

    async def _run_later(self, where: str, function: Callable[[], Any | Awaitable[Any]], expires: float | None) -> Any:
        await self._slots.acquire()
        try:
            _check_expiry(where, expires, asyncio.get_running_loop().time())
        except CallExpired:
            self._slots.release()
            raise
        return await self._start(where, function)

    def _warn_blocking(self, where: str, seconds: float) -> None:
        """Warn of a method the first time, and whenever it takes more than twice as long as before."""
        if seconds > 2 * self._longest.get(where, 0.0):
            self._longest[where] = seconds
            _log.warning(
                "%s kept the agent from everything else for %.2f s: make it async, or give the agent method_threads",
                where,
                seconds,
            )


def _check_expiry(where: str, expires: float | None, now: float) -> None:
    if expires is not None and now >= expires:
        raise CallExpired(ErrorCode.EXCEPTION, f"{where} was not started: its caller has given up")


def _outcome(where: str, task: asyncio.Future[Any]) -> Any:
    """The result; raises `RequestRefused` for any error of the application."""
    try:
        return task.result()
    except RequestRefused:
        raise
    except MethodError as error:
        raise RequestRefused(error.code, error.text) from error
    except NotImplementedError as error:
        text = str(error) or f"{where} is not implemented"
        raise RequestRefused(ErrorCode.NOT_IMPLEMENTED, text) from error
    except asyncio.CancelledError as error:
        raise RequestRefused(ErrorCode.EXCEPTION, f"{where} was cancelled") from error
    except Exception as error:
        _log.error("%s failed", where, exc_info=error)
        raise RequestRefused(ErrorCode.EXCEPTION, one_line(error), error) from error


def _log_late(where: str, task: asyncio.Future[Any]) -> None:
    if task.cancelled():
        _log.info("%s was cancelled", where)
    elif (error := task.exception()) is not None:
        _log.warning("%s failed after its time limit", where, exc_info=error)
    else:
        _log.warning("%s ended after its time limit; its result is dropped", where)
