"""The background refresher: fills the snapshot, never lets anybody wait, survives errors."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from qmf_shell.session.name_cache import NameRefresher
from shell.world import SCHEMAS, FakeSource, filesystem

from qmf.errors import DisconnectedError


class Watched:
    """A refresher whose snapshots can be waited for."""

    def __init__(self, source: FakeSource) -> None:
        self._changed = threading.Condition()
        self.refresher = NameRefresher(source)
        self.refresher.on_change(self._notify)

    def _notify(self) -> None:
        with self._changed:
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, 10)


@pytest.fixture
def source() -> FakeSource:
    return FakeSource([filesystem("/")])


def test_classes_come_by_themselves_and_objects_when_wanted(source: FakeSource) -> None:
    watched = Watched(source)
    refresher = watched.refresher
    assert refresher.snapshot.schemas == {}
    refresher.start()
    try:
        watched.wait(lambda: refresher.snapshot.schemas == SCHEMAS)
        assert refresher.snapshot.objects == ()
        assert source.asked == []
        refresher.want_objects()
        watched.wait(lambda: [item.index for item in refresher.snapshot.objects] == ["/"])
    finally:
        refresher.close()


def test_fresh_names_are_not_asked_for_again(source: FakeSource) -> None:
    watched = Watched(source)
    refresher = watched.refresher
    refresher.want_objects()
    refresher.start()
    try:
        watched.wait(lambda: bool(refresher.snapshot.objects))
        asked = len(source.asked)
        refresher.want_objects()
        source.keys = source.keys[:1]
        refresher.want_classes()
        watched.wait(lambda: len(refresher.snapshot.schemas) == 1)
        assert len(source.asked) == asked
    finally:
        refresher.close()


def test_reading_never_waits_for_a_question_under_way(source: FakeSource) -> None:
    source.gate = threading.Event()
    refresher = NameRefresher(source)
    refresher.want_objects()
    refresher.start()
    try:
        assert source.was_asked.wait(10)
        assert refresher.snapshot.objects == ()
        refresher.want_objects()
        refresher.want_classes()
    finally:
        source.gate.set()
        refresher.close()


def test_a_lost_broker_does_not_end_it(source: FakeSource) -> None:
    source.error = DisconnectedError("amqp://h", "closed")
    watched = Watched(source)
    refresher = watched.refresher
    refresher.want_objects()
    refresher.start()
    try:
        watched.wait(lambda: bool(source.asked))
        source.error = None
        refresher.want_objects()
        watched.wait(lambda: bool(refresher.snapshot.objects))
    finally:
        refresher.close()


def test_close_before_start_and_twice(source: FakeSource) -> None:
    refresher = NameRefresher(source)
    refresher.close()
    refresher.close()
