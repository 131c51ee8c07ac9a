"""The store: ids, look-up, deletions, schemas."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable

import attrs
import pytest
from agent.warehouse import BELT, SHELF, SITE, SPILL, Belt, Shelf, ShelfSpill, Site
from support.growth import growth

from qmf.agent.objects import object_store
from qmf.agent.objects.object_store import DuplicateObjectError, ManagedObjectStore, schema_of
from qmf.errors import CallerError
from qmf.protocol import ObjectId


@pytest.fixture
def store() -> ManagedObjectStore:
    ticks = itertools.count(1000)
    return ManagedObjectStore("v:p:i", 3, lambda: next(ticks))


def oid(name: str) -> ObjectId:
    return ObjectId(name, "v:p:i", 3)


def test_ids_are_made_of_index_properties_in_schema_order(store: ManagedObjectStore) -> None:
    site = Site(name="no,rth/1")
    assert store.add(site, None) == oid("org.example.stock:site:no,rth/1")
    shelf = Shelf(siteRef=site, number=7)
    assert store.add(shelf, None) == oid("org.example.stock:shelf:org.example.stock:site:no,rth/1,7")
    assert store.add(Shelf(siteRef=ObjectId("far"), number=7), None) == oid("org.example.stock:shelf:far,7")
    assert store.add(Shelf(number=8), None) == oid("org.example.stock:shelf:,8")


def test_objects_without_index_get_serial_numbers_or_the_key_given(store: ManagedObjectStore) -> None:
    names = [store.add(Belt(), key).object_name for key in (None, "2", None, "main", None)]
    assert names == [f"org.example.stock:belt:{key}" for key in ("1", "2", "3", "main", "4")]


def test_a_serial_number_is_not_used_again(store: ManagedObjectStore) -> None:
    belt = Belt()
    store.add(belt, None)
    store.remove(belt)
    assert store.add(Belt(), None).object_name.endswith(":2")


def test_duplicates_are_refused_by_name(store: ManagedObjectStore) -> None:
    store.add(Site(name="a"), None)
    with pytest.raises(DuplicateObjectError, match=r"an object 'org\.example\.stock:site:a' already") as caught:
        store.add(Site(name="a"), None)
    assert caught.value.object_name == "org.example.stock:site:a"


def test_an_object_is_in_one_agent_at_a_time(store: ManagedObjectStore) -> None:
    site = Site(name="a")
    store.add(site, None)
    with pytest.raises(CallerError, match="is in an agent already"):
        ManagedObjectStore("v:p:j", 1, lambda: 0).add(site, None)
    store.remove(site)
    with pytest.raises(CallerError, match="is not in this agent"):
        store.remove(site)
    store.add(site, None)
    assert store.all() == [site]


def test_a_key_needs_the_ids_it_refers_to(store: ManagedObjectStore) -> None:
    shelf = Shelf(siteRef=Site(name="a"), number=1)
    with pytest.raises(CallerError, match="siteRef is part of the key: add the object that it refers to first"):
        store.add(shelf, None)
    assert store.all() == []


@pytest.mark.parametrize(
    ("object_id", "found"),
    [
        (ObjectId("org.example.stock:site:a", "v:p:i", 3), True),
        (ObjectId("org.example.stock:site:a"), True),
        (ObjectId("org.example.stock:site:a", "", 0), True),
        (ObjectId("org.example.stock:site:a", "v:p:other"), False),
        (ObjectId("org.example.stock:site:a", None, 2), False),
        (ObjectId("org.example.stock:site:A"), False),
    ],
)
def test_find(store: ManagedObjectStore, object_id: ObjectId, found: bool) -> None:
    site = Site(name="a")
    store.add(site, None)
    assert store.find(object_id) is (site if found else None)


@pytest.mark.parametrize(
    ("package", "name", "count"),
    [("org.example.stock", "site", 2), ("", "SITE", 2), ("", "shelf", 0), ("other", "site", 0)],
)
def test_of_class(store: ManagedObjectStore, package: str, name: str, count: int) -> None:
    for key in "ab":
        store.add(Site(name=key), None)
    assert len(store.of_class(package, name)) == count


def test_a_deletion_holds_the_last_values(store: ManagedObjectStore) -> None:
    shelf = Shelf(number=1, label="x")
    store.add(shelf, None)
    shelf.in_.inc(5)
    store.remove(shelf)
    shelf.in_.inc(5)
    (deleted,) = store.take_deleted()
    assert deleted.object_id == oid("org.example.stock:shelf:,1")
    assert (deleted.values["in"], deleted.values["label"]) == (5, "x")
    assert deleted.delete_ts > deleted.create_ts > 0
    assert store.take_deleted() == []


def test_deletions_put_back_come_first_and_are_bounded(
    store: ManagedObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "MAX_DELETIONS", 3)
    sites = [Site(name=str(number)) for number in range(5)]
    for site in sites:
        store.add(site, None)
    for site in sites[:2]:
        store.remove(site)
    taken = store.take_deleted()
    for site in sites[2:4]:
        store.remove(site)
    store.restore_deleted(taken)
    assert [item.values["name"] for item in store.take_deleted()] == ["1", "2", "3"]
    assert store.deletions_dropped == 1


def test_schemas_are_learned_once(store: ManagedObjectStore) -> None:
    assert store.schema_updated == 0
    store.register([schema_of(ShelfSpill), schema_of(SHELF)])
    updated = store.schema_updated
    store.register([SHELF])
    assert store.schema_updated == updated > 0
    store.add(Belt(), None)
    assert store.schemas() == [BELT, SHELF, SPILL]


def test_threads_may_add_and_remove(store: ManagedObjectStore) -> None:
    def work(number: int) -> None:
        for count in range(100):
            site = Site(name=f"{number}-{count}")
            store.add(site, None)
            if count % 2:
                store.remove(site)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(store.all()), len(store.take_deleted())) == (400, 400)


def test_schemas_are_sorted_once_and_found_without_looking_at_all() -> None:
    def prepare(count: int) -> Callable[[], object]:
        store = ManagedObjectStore("v:p:i", 1, lambda: 7)
        schemas = [attrs.evolve(SITE, name=f"site{number}") for number in range(count)]
        store.register(reversed(schemas))

        def work() -> None:
            for schema in schemas:
                assert len(store.schemas()) == count
                assert store.schemas_named(schema.name, "none") == [schema]

        return work

    assert growth(prepare) < 12


def test_schemas_have_the_order_of_their_keys() -> None:
    store = ManagedObjectStore("v:p:i", 1, lambda: 7)
    store.register([SPILL, SITE])
    assert [schema.key for schema in store.schemas()] == sorted([SPILL.key, SITE.key])
    store.register([SHELF])
    assert [schema.key for schema in store.schemas()] == sorted([SPILL.key, SITE.key, SHELF.key])
    twins = [attrs.evolve(SHELF, package=package) for package in ("org.zebra", "org.aardvark")]
    store.register(twins)
    assert [schema.package for schema in store.schemas_named("shelf")] == ["org.aardvark", SHELF.package, "org.zebra"]
