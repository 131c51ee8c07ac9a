"""How a thread hands work to the thread of a connection, and waits for one outcome."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from qmf.messaging.core.thread_signal import ThreadSignal
from qmf.messaging.core.waiting import SIGNAL_INTERVAL
from qmf.messaging.loop import ConnectionLoop

#: Seconds that `Wakeup.let_run` waits at most.
WAIT_LIMIT = 0.002
#: Messages that keep a thread busy for a while.
MANY = 100


class Wakeup:
    """Calls a function on the loop's thread soon; calls that have not begun yet are one.

    Attributes:
        posted: for its owner: messages since the loop's thread was given time.
        scheduled: a call has not begun yet.
    """

    def __init__(self, loop: ConnectionLoop, callback: Callable[[], None]) -> None:
        self.posted = 0
        self._loop = loop
        self._callback = callback
        self.scheduled = False
        self._waiting: threading.Lock | None = None

    def __call__(self) -> None:
        if not self.scheduled:
            self.call()

    def call(self) -> None:
        """The same, whether a call that has not begun is there or not: for a caller that waits for it.

        In a handler of signals, the function that it interrupted may have set `scheduled` and not called the loop yet;
        it continues only after the handler returns.
        """
        try:
            self.scheduled = True
            self._loop.call_soon(self._run)
        except BaseException:  # an interrupt, too: without this, nobody would call any more
            self.scheduled = False
            raise

    def let_run(self, *, if_busy: bool) -> None:
        """The same, and where this thread is busy, give the loop's thread the time for it.

        A thread that goes on computing keeps the interpreter from the other one for up to 5 ms
        (`sys.getswitchinterval`), in which the broker has nothing to do.
        """
        if not if_busy:
            self()
            return
        waiting = self._waiting = threading.Lock()
        waiting.acquire()
        self()
        waiting.acquire(timeout=WAIT_LIMIT)

    def _run(self) -> None:
        self.scheduled = False
        self._callback()
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            waiting.release()


class BlockingAnswer:
    """The outcome of one message, for one thread that waits. Cheaper than a future of `concurrent.futures`."""

    __slots__ = ("_abandoned", "_error", "_given", "_signal")

    def __init__(self, signal: ThreadSignal) -> None:
        """There is no outcome yet; `signal` is that of the thread that waits."""
        self._signal = signal
        self._error: BaseException | None = None
        self._given = self._abandoned = False

    def done(self) -> bool:
        """True once there is an outcome, or nobody waits for it any more."""
        return self._given or self._abandoned

    def abandon(self) -> None:
        """Nobody waits for the outcome any more."""
        self._abandoned = True

    def set_result(self, result: None) -> None:
        """The message was accepted."""
        del result
        self._given = True
        self._signal.give_last()

    def set_exception(self, exception: BaseException) -> None:
        """The message was not accepted."""
        self._error = exception
        self._given = True
        self._signal.give_last()

    def wait(self, timeout: float | None) -> bool:
        """Wait for the outcome.

        Returns:
            False if there is none after `timeout` seconds.

        Raises:
            MessagingError: the message was not accepted.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._given:
            # It looks again and again: a signal of the system may have come just before a wait began.
            left = SIGNAL_INTERVAL if deadline is None else min(SIGNAL_INTERVAL, deadline - time.monotonic())
            if left <= 0:
                return False
            self._signal.wait(left)
        if self._error is not None:
            raise self._error
        return True
