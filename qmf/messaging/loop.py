"""The background event loop of a synchronous connection."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from qmf._loop_thread import LoopThread
from qmf.bus.gate import Gate
from qmf.bus.gated_loop import new_gated_loop
from qmf.errors import CallerError
from qmf.messaging.core.thread_signal import EventSignal, ThreadSignal, thread_signal
from qmf.messaging.exceptions import ConnectionClosed, InternalError

T = TypeVar("T")


class _Process:
    """This process. To ask the system for it takes as long as all else that is done for a message.

    Attributes:
        id: of the process.
    """

    id = os.getpid()

    @classmethod
    def renew(cls) -> None:
        """This is another process: a fork of the one before."""
        cls.id = os.getpid()


os.register_at_fork(after_in_child=_Process.renew)


class ConnectionLoop:
    """Runs the coroutines of one connection on a thread of its own, in the process that made the connection."""

    def __init__(self, gated: Callable[[], bool] = lambda: True) -> None:
        """Start nothing yet.

        Args:
            gated: whether other threads could write to the connection: one over TCP and nothing else.
        """
        self._gated = gated
        self._gate: Gate | None = None
        self._thread = LoopThread(
            "qmf-messaging", "call it from another thread, or use qmf.messaging.aio in coroutines", self._gated_loop
        )
        self._process = _Process.id

    def _gated_loop(self) -> asyncio.AbstractEventLoop | None:
        loop = new_gated_loop() if self._gated() else None
        self._gate = None if loop is None else loop.gate
        return loop

    def new_signal(self) -> ThreadSignal:
        """A signal for a thread that waits for what happens on the loop's."""
        signal = thread_signal()
        return _GatedSignal(self, signal) if isinstance(signal, EventSignal) else signal

    def give_last(self, signal: EventSignal) -> None:
        """Give a signal when the loop waits, so that the thread can do at once what needs that."""
        if self._gate is None:
            signal.give()
        else:
            self._gate.signal(signal.number, signal)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine and wait for its result. An interrupt, such as Ctrl-C, cancels it.

        Raises:
            InternalError: called on the loop's thread, as from a handler.
            ConnectionClosed: called in another process than that which made the connection, or after its end.
            MessagingError: as the coroutine raises.
        """
        try:
            self.check_process()
            return self._thread.run(work)
        except ConnectionClosed:
            work.close()
            raise
        except CallerError as error:
            raise InternalError(text=str(error)) from error

    def call_soon(self, callback: Callable[[], object]) -> None:
        """Call something on the loop's thread soon; errors as of `run`."""
        if _Process.id != self._process:
            self.check_process()
        try:
            self._thread.call_soon(callback)
        except CallerError as error:
            raise ConnectionClosed(text="the connection is closed") from error

    def check_thread(self) -> None:
        """Refuse a blocking call on the loop's thread, and any in another process.

        Raises:
            InternalError: this is the loop's thread.
            ConnectionClosed: this is another process than that which made the connection.
        """
        if _Process.id != self._process:
            self.check_process()
        if threading.get_ident() == self._thread.ident:
            raise InternalError(text="blocking call in a handler of the connection; call it from another thread")

    def stop(self) -> None:
        """End the thread, unless it is one of another process."""
        if _Process.id == self._process:
            self._thread.stop()

    def check_process(self) -> None:
        """Refuse to use the connection of another process.

        Raises:
            ConnectionClosed: another process made the connection.
        """
        if _Process.id != self._process:
            raise ConnectionClosed(text="the connection was made by another process; make one after the fork")


class _GatedSignal:
    """A signal of a thread that is given last by the gate of the loop, where that has one."""

    __slots__ = ("_loop", "_signal", "give", "poll", "wait")

    def __init__(self, loop: ConnectionLoop, signal: EventSignal) -> None:
        self._loop = loop
        self._signal = signal
        self.give: Callable[[], None] = signal.give
        self.wait: Callable[[float], bool] = signal.wait
        self.poll = signal.poll

    def give_last(self) -> None:
        """See `ThreadSignal`."""
        self._loop.give_last(self._signal)
