"""Observers of a queue."""

from __future__ import annotations

from qmf.broker.nodes.entries import DepthObserver, Entry, EntryObserver, Observers


class Few(DepthObserver):
    def is_quiet(self, count: int, size: int) -> bool:
        return count < 3


def test_all_are_quiet_while_the_depth_is_small_unless_one_needs_each_entry() -> None:
    observers = Observers()
    assert (observers.are_quiet(9, 9), observers.need_each) == (True, False)
    few, each = Few(), EntryObserver()
    observers.add(few)
    assert (observers.are_quiet(2, 9), observers.are_quiet(3, 9), observers.need_each) == (True, False, False)
    observers.add(each)
    assert (observers.are_quiet(2, 9), observers.need_each, observers.all) == (False, True, (few, each))
    observers.remove(each)
    observers.remove(each)
    assert (observers.are_quiet(2, 9), observers.need_each, observers.all) == (True, False, (few,))


def test_an_observer_of_acquisitions_is_needed_before_each_delivery() -> None:
    class Noting(EntryObserver):
        def on_acquired(self, entry: Entry) -> None:
            """Looks at each."""

    observers, noting = Observers(), Noting()
    observers.add(EntryObserver())
    assert (observers.need_each, observers.need_acquired) == (True, False)
    observers.add(noting)
    assert observers.need_acquired
    observers.remove(noting)
    assert not observers.need_acquired


def test_an_entry_that_changed_is_a_change_of_the_depth() -> None:
    seen: list[object] = []

    class Noting(Few):
        def on_enqueued(self, entry: Entry) -> None:
            seen.append(entry)

    Noting().on_changed(entry := object(), 3)  # type: ignore[arg-type]
    assert seen == [entry]
