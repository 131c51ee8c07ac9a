"""A service on an event loop in a thread of its own."""

from __future__ import annotations

import threading

import pytest

from qmf._service_thread import ServiceThread
from qmf.errors import CallerError


class Counting:
    """A service that counts its starts and ends, and may fail."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault = fault
        self.starts = self.ends = 0
        self.thread: threading.Thread | None = None

    async def start(self) -> None:
        self.thread = threading.current_thread()
        if self.fault is not None:
            raise self.fault
        self.starts += 1

    async def close(self) -> None:
        self.ends += 1

    async def total(self) -> int:
        return self.starts + self.ends


def test_a_service_runs_in_its_thread_until_it_is_closed() -> None:
    with ServiceThread("test-service", Counting, Counting.start) as running:
        service = running.service
        assert (service.starts, service.ends) == (1, 0)
        assert service.thread is not None
        assert service.thread.name == "test-service"
        assert running.run(service.total()) == 1
    running.close()
    assert (service.starts, service.ends) == (1, 1)
    assert not service.thread.is_alive()


def test_an_error_of_the_start_is_the_callers_and_the_thread_has_ended() -> None:
    service = Counting(LookupError("no such thing"))
    with pytest.raises(LookupError, match="no such thing"):
        ServiceThread("test-service", lambda: service, Counting.start)
    assert (service.starts, service.ends) == (0, 1)
    assert service.thread is not None
    assert not service.thread.is_alive()


def test_the_thread_cannot_close_itself() -> None:
    with ServiceThread("test-service", Counting, Counting.start) as running:

        async def close() -> None:
            running.close()

        with pytest.raises(CallerError, match="cannot be closed by that thread"):
            running.run(close())
