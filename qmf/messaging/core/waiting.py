"""Waiting for a condition of the loop's thread, there and on other threads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable

from qmf.messaging.core.thread_signal import ThreadSignal, thread_signal

#: Seconds without any answer after which closing a sender or receiver gives up, if the caller sets no limit.
CLOSE_TIMEOUT = 10.0

#: Seconds after which a thread that waits looks again. A signal that arrives just before it begins to wait does not end
#: the wait: Python runs its handler only between instructions of the main thread.
SIGNAL_INTERVAL = 0.2


def _wait(signal: ThreadSignal, seconds: float) -> bool:
    return signal.wait(seconds)


class Condition:
    """Wakes up coroutines of one event loop, and other threads, that wait for a predicate.

    Those that wait for messages to be fetched are not woken up for answers to messages that were sent: the broker
    answers to a request before the response comes, and nobody would have anything to do.

    Attributes:
        new_signal: makes the signal of a thread.
        waiters, fetching: what coroutines wait for, and until which time of the loop; `fetching` for messages.
        threads, fetching_threads: the signals that threads wait for; each thread has one.
        fetches: how often somebody has begun to wait for messages; about as often, if several do at once.
    """

    def __init__(self) -> None:
        self.new_signal: Callable[[], ThreadSignal] = thread_signal
        self.fetches = 0
        self.waiters: dict[asyncio.Future[None], float | None] = {}
        self.fetching: dict[asyncio.Future[None], float | None] = {}
        #: One timer for all, since most waits end long before their deadline; and when it is due.
        self._timer: asyncio.TimerHandle | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._due = 0.0
        self.threads: deque[ThreadSignal] = deque()
        self.fetching_threads: deque[ThreadSignal] = deque()
        self._of_thread = threading.local()

    def notify(self, *, alone: bool = False) -> None:
        """Something changed: every predicate is evaluated again.

        Args:
            alone: a message has arrived, and no other: who fetches it may send next.
        """
        self.notify_answered()
        if self.fetching:
            waiters, self.fetching = self.fetching, {}
            _wake(waiters)
        if self.fetching_threads:
            _release(self.fetching_threads, last=alone)

    def awaits_answers(self) -> bool:
        """Whether `notify_answered` would wake up anybody."""
        return bool(self.waiters or self.threads)

    def notify_answered(self) -> None:
        """Messages that were sent, or acknowledged, are answered: the predicates that may be about them."""
        if self.waiters:
            waiters, self.waiters = self.waiters, {}
            _wake(waiters)
        if self.threads:
            _release(self.threads)

    async def wait_for(
        self, predicate: Callable[[], bool], deadline: float | None = None, *, fetching: bool = False
    ) -> bool:
        """Wait until the predicate is true.

        Args:
            predicate: may raise, which ends the wait.
            deadline: time of the loop at which to give up; None to wait for ever.
            fetching: it is only about messages that arrive, and failures.

        Returns:
            False if the deadline came first.
        """
        while not predicate():
            if not await self.wait(deadline, fetching=fetching):
                return predicate()
        return True

    async def wait(self, deadline: float | None, *, fetching: bool = False) -> bool:
        """Wait until something has changed.

        Args:
            deadline, fetching: as of `wait_for`.

        Returns:
            False if the deadline came first.
        """
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        self.fetches += fetching
        (self.fetching if fetching else self.waiters)[waiter] = deadline
        if deadline is not None and (self._timer is None or deadline < self._due or loop is not self._loop):
            self._set_timer(loop, deadline)
        try:
            await waiter
        except TimeoutError:
            return False
        finally:
            (self.fetching if fetching else self.waiters).pop(waiter, None)
        return True

    def wait_on_thread(
        self,
        predicate: Callable[[], bool],
        timeout: float | None,
        *,
        fetching: bool = False,
        wait: Callable[[ThreadSignal, float], bool] = _wait,
    ) -> bool:
        """Wait on another thread than the loop's until the predicate is true.

        Args:
            predicate: may raise, which ends the wait; evaluated on the thread that waits.
            timeout: seconds to wait; None for no limit.
            fetching: it is only about messages that arrive, and failures.
            wait: waits for the signal of the thread, or for the same in another way, as `ThreadSignal.wait` does.

        Returns:
            False if it was not true within `timeout` seconds.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        threads = self.fetching_threads if fetching else self.threads
        self.fetches += fetching
        signal = self.signal_of_thread()
        threads.append(signal)
        try:
            while not predicate():
                left = SIGNAL_INTERVAL if deadline is None else min(SIGNAL_INTERVAL, deadline - time.monotonic())
                if left <= 0:
                    return False
                if wait(signal, left) and signal not in threads:
                    threads.append(signal)
            return True
        finally:
            with contextlib.suppress(ValueError):
                threads.remove(signal)

    def signal_of_thread(self) -> ThreadSignal:
        """The signal of the thread that calls this."""
        signal: ThreadSignal | None = getattr(self._of_thread, "signal", None)
        if signal is None:
            signal = self._of_thread.signal = self.new_signal()
        return signal

    def cancel_timer(self) -> None:
        """No coroutine waits any more; to be called on the loop's thread."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _set_timer(self, loop: asyncio.AbstractEventLoop, deadline: float) -> None:
        if loop is self._loop:
            self.cancel_timer()
        self._loop, self._due = loop, deadline
        self._timer = loop.call_at(deadline, self._give_up, loop)

    def _give_up(self, loop: asyncio.AbstractEventLoop) -> None:
        """End the waits whose deadline has come."""
        if loop is not self._loop:
            return
        self._timer, now = None, max(loop.time(), self._due)  # timers may be early by the clock's resolution
        later: list[float] = []
        for waiter, deadline in (*self.waiters.items(), *self.fetching.items()):
            if deadline is None or waiter.done():
                continue
            if deadline <= now:
                waiter.set_exception(TimeoutError())
            else:
                later.append(deadline)
        if later:
            self._set_timer(loop, min(later))


def _wake(waiters: Iterable[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)


def _release(threads: deque[ThreadSignal], *, last: bool = False) -> None:
    for _ in range(len(threads)):
        with contextlib.suppress(IndexError):  # it gave up
            signal = threads.popleft()
            (signal.give_last if last else signal.give)()


def deadline_of(timeout: float | None) -> float | None:
    """The time of the running loop after `timeout` seconds; None for no limit."""
    return None if timeout is None else asyncio.get_running_loop().time() + max(0.0, timeout)
