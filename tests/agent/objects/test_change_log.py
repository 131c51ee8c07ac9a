"""The list of changed objects: each once for each reader, whatever changed it, and work only for what changed."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import pytest
from agent.warehouse import Shelf, Site
from support.growth import growth

from qmf.agent import ManagedObject
from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import BOTH, PROPERTIES, STATISTICS
from qmf.agent.objects.change_log import ChangeWatch
from qmf.agent.objects.object_store import ManagedObjectStore


@pytest.fixture
def store() -> ManagedObjectStore:
    ticks = itertools.count(1000)
    return ManagedObjectStore("v:p:i", 3, lambda: next(ticks))


@pytest.fixture
def watch(store: ManagedObjectStore) -> ChangeWatch:
    return store.changes.watch()


@pytest.fixture
def shelf(store: ManagedObjectStore, watch: ChangeWatch) -> Shelf:
    """A shelf whose changes were taken."""
    made = Shelf(number=1)
    made.in_.set(100)
    store.add(made, None)
    assert taken(watch) == [made]
    return made


def taken(watch: ChangeWatch) -> list[ManagedObject]:
    """What a reader takes now."""
    return list(watch.take()[0].values())


CHANGES: dict[str, tuple[Callable[[Shelf], object], int]] = {
    "a property": (lambda shelf: setattr(shelf, "limit", 7), PROPERTIES),
    "a map": (lambda shelf: setattr(shelf, "options", {"a": 1}), PROPERTIES),
    "a reference": (lambda shelf: setattr(shelf, "nextRef", Shelf(number=9)), PROPERTIES),
    "counted": (lambda shelf: shelf.in_.inc(), STATISTICS),
    "counted down": (lambda shelf: shelf.in_.dec(), STATISTICS),
    "set": (lambda shelf: shelf.in_.set(5), STATISTICS),
    "a sample": (lambda shelf: shelf.wait.sample(5), STATISTICS),
    "a high and low": (lambda shelf: shelf.users.set(5), STATISTICS),
}


@pytest.mark.parametrize("name", CHANGES)
def test_whatever_changes_an_object_adds_it_once(watch: ChangeWatch, shelf: Shelf, name: str) -> None:
    change, group = CHANGES[name]
    before = watch.take()[1]
    change(shelf)
    change(shelf)
    assert taken(watch) == [shelf]
    assert object_state.groups_changed_since(shelf, before) & group
    assert taken(watch) == []
    shelf.in_.inc()
    assert taken(watch) == [shelf]


def test_the_same_value_is_no_change(watch: ChangeWatch, shelf: Shelf) -> None:
    shelf.limit = shelf.limit
    shelf.in_.set(shelf.in_.value)
    assert taken(watch) == []


def test_each_reader_has_a_list_of_its_own(store: ManagedObjectStore, watch: ChangeWatch, shelf: Shelf) -> None:
    other = store.changes.watch()
    shelf.in_.inc()
    assert taken(watch) == [shelf]
    assert taken(other) == [shelf]
    shelf.in_.inc()
    store.changes.distribute()
    shelf.limit = 5
    tick = other.take()[1]
    assert object_state.groups_changed_since(shelf, tick) == 0
    assert taken(watch) == [shelf]


def test_a_tick_separates_what_was_taken_from_what_comes(watch: ChangeWatch, shelf: Shelf) -> None:
    shelf.in_.inc()
    _, first = watch.take()
    shelf.limit = 9
    _, second = watch.take()
    assert object_state.groups_changed_since(shelf, first - 1) == BOTH
    assert object_state.groups_changed_since(shelf, first) == PROPERTIES
    assert object_state.groups_changed_since(shelf, second) == 0


def test_a_removed_object_is_in_the_list_and_its_later_changes_are_not(
    store: ManagedObjectStore, watch: ChangeWatch, shelf: Shelf
) -> None:
    store.remove(shelf)
    assert taken(watch) == [shelf]
    shelf.in_.inc()
    shelf.limit = 8
    assert taken(watch) == []
    store.add(shelf, "again")
    assert taken(watch) == [shelf]


def test_a_reference_that_becomes_valid_is_a_change(
    store: ManagedObjectStore, watch: ChangeWatch, shelf: Shelf
) -> None:
    later = Shelf(number=2)
    shelf.nextRef = later
    assert taken(watch) == [shelf]
    assert taken(watch) == []
    store.add(later, None)
    assert taken(watch) == [later, shelf]
    assert taken(watch) == []


def test_a_removed_object_waits_for_no_reference(store: ManagedObjectStore, watch: ChangeWatch, shelf: Shelf) -> None:
    later = Shelf(number=2)
    shelf.nextRef = later
    assert taken(watch) == [shelf]
    store.remove(shelf)
    assert taken(watch) == [shelf]
    store.add(later, None)
    assert taken(watch) == [later]


def test_objects_of_equal_value_are_different_objects(store: ManagedObjectStore, watch: ChangeWatch) -> None:
    class Equal(Site):
        def __eq__(self, other: object) -> bool:
            return isinstance(other, Equal)

        __hash__ = None  # type: ignore[assignment]  # a program may do so

    first, second = Equal(name="a"), Equal(name="b")
    for site in (first, second):
        store.add(site, None)
    assert [item is site for item, site in zip(taken(watch), (first, second), strict=True)] == [True, True]


def test_no_change_of_other_threads_is_missed(store: ManagedObjectStore, watch: ChangeWatch) -> None:
    shelves = [Shelf(number=number) for number in range(20)]
    for shelf in shelves:
        store.add(shelf, None)
    watch.take()
    rounds, last = 300, dict.fromkeys(map(id, shelves), 0)

    def count() -> None:
        for _ in range(rounds):
            for shelf in shelves:
                shelf.in_.inc()

    thread = threading.Thread(target=count)
    thread.start()
    while thread.is_alive():
        for key, obj in watch.take()[0].items():
            assert isinstance(obj, Shelf)
            last[key] = obj.in_.value
    for key, obj in watch.take()[0].items():
        assert isinstance(obj, Shelf)
        last[key] = obj.in_.value
    assert set(last.values()) == {rounds}


def test_the_work_for_a_change_does_not_grow_with_the_objects() -> None:
    def prepare(size: int) -> Callable[[], object]:
        store = ManagedObjectStore("v:p:i", 3, lambda: 7)
        shelves = [Shelf(number=number) for number in range(size)]
        for shelf in shelves:
            store.add(shelf, None)
        watch = store.changes.watch()
        watch.take()
        shelves[0].in_.inc()
        return watch.take

    assert growth(prepare) == 1
