"""How a thread that waits is woken up."""

from __future__ import annotations

import contextlib
import os
import select
import threading
from typing import Protocol


class ThreadSignal(Protocol):
    """Wakes up one thread; it may be given before the thread waits. Who waits looks whether what it waits for is true:
    a signal may be left of an earlier wait.
    """

    def give(self) -> None:
        """End the wait of the thread, or its next one; on any thread."""

    def give_last(self) -> None:
        """`give` as the last thing of this turn of the loop, for a thread that needs the loop to wait next."""

    def wait(self, seconds: float) -> bool:
        """Wait for the signal.

        Returns:
            False if it did not come within so many seconds, more than 0.
        """

    @property
    def poll(self) -> int | None:
        """The descriptor of an epoll that becomes readable with the signal; None without an epoll."""


class EventSignal:
    """A counter of the kernel, whose changes are what is waited for; it is never read.

    The thread that gives the signal lets the interpreter go while it calls the system, so that the one that waits finds
    it free; a lock is released with the interpreter held, and costs one change of threads more.

    Attributes:
        number: descriptor of the counter.
    """

    __slots__ = ("_poll", "number")

    def __init__(self) -> None:
        """Make a signal.

        Raises:
            OSError: the process has no file descriptors left.
        """
        self.number = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        try:
            self._poll = select.epoll(1)
            self._poll.register(self.number, select.EPOLLIN | select.EPOLLET)
        except OSError:
            os.close(self.number)
            del self.number
            raise

    def give(self) -> None:
        """See `ThreadSignal`."""
        os.eventfd_write(self.number, 1)

    give_last = give

    def wait(self, seconds: float) -> bool:
        """See `ThreadSignal`."""
        return bool(self._poll.poll(seconds, 1))

    @property
    def poll(self) -> int:
        """See `ThreadSignal`."""
        return self._poll.fileno()

    def __del__(self) -> None:
        if hasattr(self, "number"):
            os.close(self.number)


class LockSignal:
    """A lock, where the system has nothing better."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lock.acquire()

    def give(self) -> None:
        """See `ThreadSignal`."""
        with contextlib.suppress(RuntimeError):  # it is given already
            self._lock.release()

    give_last = give

    def wait(self, seconds: float) -> bool:
        """See `ThreadSignal`."""
        return self._lock.acquire(timeout=seconds)

    @property
    def poll(self) -> None:
        """See `ThreadSignal`."""
        return None


def thread_signal() -> ThreadSignal:
    """A new signal."""
    if hasattr(os, "eventfd"):
        with contextlib.suppress(OSError):
            return EventSignal()
    return LockSignal()
