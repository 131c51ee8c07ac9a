"""The background refresher: fills the snapshot, never blocks a reader, survives errors."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from qmf_shell.session import name_cache
from qmf_shell.session.name_cache import NameRefresher
from shell.fakes import SCHEMAS, FakeBackend, filesystem

from qmf.errors import DisconnectedError


class Watched:
    """A refresher whose snapshots can be waited for."""

    def __init__(self, backend: FakeBackend) -> None:
        self._changed = threading.Condition()
        self.refresher = NameRefresher(backend)
        self.refresher.on_change(self.notify)

    def notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, 10)


@pytest.fixture
def backend() -> FakeBackend:
    return FakeBackend([filesystem("/")])


def test_classes_come_by_themselves_and_objects_when_wanted(backend: FakeBackend) -> None:
    watched = Watched(backend)
    refresher = watched.refresher
    assert refresher.snapshot.schemas == {}
    refresher.start()
    try:
        watched.wait(lambda: refresher.snapshot.schemas == SCHEMAS)
        assert refresher.snapshot.objects == ()
        assert backend.asked == []
        refresher.request_objects()
        watched.wait(lambda: [item.index for item in refresher.snapshot.objects] == ["/"])
    finally:
        refresher.close()


def test_fresh_names_are_not_asked_for_again(backend: FakeBackend) -> None:
    watched = Watched(backend)
    refresher = watched.refresher
    refresher.request_objects()
    refresher.start()
    try:
        watched.wait(lambda: bool(refresher.snapshot.objects))
        asked = len(backend.asked)
        refresher.request_objects()
        backend.keys = backend.keys[:1]
        refresher.request_classes()
        watched.wait(lambda: len(refresher.snapshot.schemas) == 1)
        assert len(backend.asked) == asked
    finally:
        refresher.close()


def test_reading_never_waits_for_a_question_under_way(backend: FakeBackend) -> None:
    backend.gate = threading.Event()
    refresher = NameRefresher(backend)
    refresher.request_objects()
    refresher.start()
    try:
        assert backend.was_asked.wait(10)
        assert refresher.snapshot.objects == ()
        refresher.request_objects()
        refresher.request_classes()
    finally:
        backend.gate.set()
        refresher.close()


def test_a_lost_broker_does_not_end_it(backend: FakeBackend) -> None:
    backend.error = DisconnectedError("amqp://h", "closed")
    watched = Watched(backend)
    refresher = watched.refresher
    refresher.request_objects()
    refresher.start()
    try:
        watched.wait(lambda: bool(backend.asked))
        backend.error = None
        refresher.request_objects()
        watched.wait(lambda: bool(refresher.snapshot.objects))
        assert refresher.snapshot.objects
    finally:
        refresher.close()


def test_close_before_start_and_twice(backend: FakeBackend) -> None:
    refresher = NameRefresher(backend)
    refresher.close()
    refresher.close()
    assert backend.asked == []


@pytest.mark.parametrize("count", [8, 80])
def test_the_first_names_are_there_before_all(
    backend: FakeBackend, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    monkeypatch.setattr(name_cache, "FIRST_NAMES", 5)
    backend.keeps_limits = True
    backend.records = [filesystem(f"/{number}") for number in range(count)]
    watched = Watched(backend)
    refresher = watched.refresher
    known: list[int] = []

    def on_change() -> None:
        known.append(len(refresher.snapshot.objects))
        watched.notify()

    refresher.on_change(on_change)
    refresher.request_objects()
    refresher.start()
    try:
        watched.wait(lambda: len(refresher.snapshot.objects) == count)
        # However many there are, so many come first.
        assert next(number for number in known if number) == 5
        assert backend.limits == [5, None]
    finally:
        refresher.close()
