"""The runner of method calls and property changes: a few at a time and with a time limit."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any

from qmf.agent.request_errors import MethodError, RequestRefused, one_line
from qmf.protocol import ErrorCode

_log = logging.getLogger("qmf.agent")


class CallRunner:
    """Runs calls for one agent; belongs to the event loop's thread."""

    def __init__(self, limit: int, timeout: float | None) -> None:
        """Set up.

        Args:
            limit: calls that run at the same time. A call that runs beyond its time limit counts until it ends.
            timeout: seconds for one call, from the request on, or None.
        """
        self._slots = asyncio.Semaphore(limit)
        self._timeout = timeout

    async def run(self, where: str, function: Callable[[], Any | Awaitable[Any]]) -> Any:
        """Call a function and return its result, within the time limit.

        A function that awaits is cancelled at the time limit. Any other function cannot be interrupted: its result is
        dropped, and logged.

        Args:
            where: ``Class.method``, for errors and logs.
            function: the function.

        Raises:
            RequestRefused: it raised an error, was cancelled, or took too long.
        """
        loop = asyncio.get_running_loop()
        begin = loop.time()
        task: asyncio.Future[Any]
        if self._slots.locked():
            task = asyncio.ensure_future(self._run_later(function))
        else:
            # Most methods return at once: a task for each would be most of the cost of a call.
            await self._slots.acquire()
            task = self._run_now(function)
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

    def _run_now(self, function: Callable[[], Any | Awaitable[Any]]) -> asyncio.Future[Any]:
        """Call a function that has a slot; the future is done unless the function awaits."""
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
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
            if done.done():
                self._slots.release()
            else:
                done.add_done_callback(lambda _: self._slots.release())
        return done

    async def _run_later(self, function: Callable[[], Any | Awaitable[Any]]) -> Any:
        async with self._slots:
            result = function()
            return await result if inspect.isawaitable(result) else result


def _outcome(where: str, task: asyncio.Future[Any]) -> Any:
    """The result; raises `RequestRefused` for any error of the application."""
    try:
        return task.result()
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
