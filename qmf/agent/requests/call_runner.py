"""Running what an application wrote: methods and setters of properties, a few at a time and with a time limit."""

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
            limit: calls at the same time. One that goes on after its time keeps its place until it ends.
            timeout: seconds from the request on, or None.
        """
        self._free = asyncio.Semaphore(limit)
        self._timeout = timeout

    async def run(self, where: str, function: Callable[[], Any | Awaitable[Any]]) -> Any:
        """Call a function and give its result, within the time limit.

        A function that awaits is cancelled when its time is over. One that does not cannot be interrupted: its result
        comes too late, and is logged.

        Args:
            where: what it is, for errors and logs.
            function: what to call.

        Raises:
            RequestRefused: it raised something, was cancelled, or took too long.
        """
        loop = asyncio.get_running_loop()
        begin = loop.time()
        task: asyncio.Future[Any]
        if self._free.locked():
            task = asyncio.ensure_future(self._in_turn(function))
        else:
            # Most methods return at once: a task for each would be most of the cost of a call.
            await self._free.acquire()
            task = self._begun(function)
        if not task.done():
            try:
                await asyncio.wait((task,), timeout=self._timeout)
            except asyncio.CancelledError as error:
                task.cancel()
                task.add_done_callback(lambda task: _late(where, task))
                raise RequestRefused(ErrorCode.EXCEPTION, f"{where} was cancelled") from error
        # What held up the loop is done by now, and yet too late.
        if self._timeout is not None and (not task.done() or loop.time() - begin > self._timeout):
            task.cancel()
            task.add_done_callback(lambda task: _late(where, task))
            raise RequestRefused(ErrorCode.EXCEPTION, f"{where} took longer than {self._timeout:g} s")
        return _outcome(where, task)

    def _begun(self, function: Callable[[], Any | Awaitable[Any]]) -> asyncio.Future[Any]:
        """Call a function that has its turn; the future is done unless the function awaits."""
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
            # As from a coroutine: no future takes it.
            done.set_exception(RuntimeError(f"the function raised StopIteration: {error}"))
        except Exception as error:  # noqa: BLE001  # whatever it is, `_outcome` says it
            done.set_exception(error)
        finally:
            if done.done():
                self._free.release()
            else:
                done.add_done_callback(lambda _: self._free.release())
        return done

    async def _in_turn(self, function: Callable[[], Any | Awaitable[Any]]) -> Any:
        async with self._free:
            result = function()
            return await result if inspect.isawaitable(result) else result


def _outcome(where: str, task: asyncio.Future[Any]) -> Any:
    """The result, or a `RequestRefused` for whatever an application may raise."""
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


def _late(where: str, task: asyncio.Future[Any]) -> None:
    if task.cancelled():
        _log.info("%s was given up", where)
    elif (error := task.exception()) is not None:
        _log.warning("%s failed after its time was over", where, exc_info=error)
    else:
        _log.warning("%s ended after its time was over; its result is dropped", where)
