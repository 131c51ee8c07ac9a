"""Followed objects and their changes: a reader of all changes has the same objects, however slow it is."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest
from console.aio.following.reading import ADDED, CHANGED
from hypothesis import given
from hypothesis import strategies as st

from qmf.console.aio import (
    ChangeKind,
    RemoteObject,
)
from qmf.console.aio.following.followed_objects import FollowedObjects
from qmf.protocol import (
    ObjectData,
    ObjectId,
)

PUT, SAME, REMOVE, PASS, READ = "put", "same", "remove", "pass", "read"

_steps = st.lists(st.tuples(st.sampled_from([PUT, PUT, SAME, REMOVE, PASS, READ]), st.integers(0, 4)), max_size=80)


def thing(number: int, version: int) -> RemoteObject:
    oid = ObjectId(f"o{number}", "a")
    return RemoteObject(ObjectData(values={"v": version}, object_id=oid), oid, "a", None, None)


class Reader:
    """Keeps its own objects by the changes."""

    def __init__(self, followed: FollowedObjects) -> None:
        self.followed = followed
        self.seen: dict[str, int] = {}
        self.count = self.merged = self.dropped = 0

    def read(self) -> bool:
        change = self.followed.take()
        if change is None:
            return False
        name = str(change.object.object_id)
        self.count += 1
        self.merged += change.merged
        self.dropped += change.dropped
        if change.kind is ChangeKind.ADDED:
            assert name not in self.seen or self.dropped
        if change.kind.gone:
            self.seen.pop(name, None)
        else:
            self.seen[name] = change.object["v"]
        return True


@given(_steps)
def test_a_reader_of_all_changes_has_the_same_objects(steps: Sequence[tuple[str, int]]) -> None:
    woken: list[None] = []
    followed = FollowedObjects(1000, lambda: woken.append(None))
    reader = Reader(followed)
    changes = 0
    for version, (step, number) in enumerate(steps):
        obj = thing(number, version)
        known = obj.object_id in followed
        match step:
            case "put":
                followed.put(obj, properties=True, statistics=False)
                changes += 1
            case "same":
                old = followed.get(obj.object_id)
                if old is not None:
                    followed.put(old, properties=False, statistics=False)  # nothing is different: no changes
            case "remove" if known:
                followed.remove(obj, ChangeKind.DELETED)
                changes += 1
            case "pass":
                followed.remove(obj, ChangeKind.DELETED)  # came and went
                changes += 1
            case "read":
                reader.read()
        assert len(woken) == changes
    while reader.read():
        pass
    assert reader.seen == {str(obj.object_id): obj["v"] for obj in followed}
    assert reader.count + reader.merged == changes
    assert (followed.merged, followed.dropped, reader.dropped) == (reader.merged, 0, 0)


@given(_steps, st.integers(1, 3))
def test_what_waits_is_bounded_and_what_is_dropped_is_counted(steps: Sequence[tuple[str, int]], size: int) -> None:
    followed = FollowedObjects(size, lambda: None)
    reader = Reader(followed)
    for version, (step, number) in enumerate(steps):
        obj = thing(number, version)
        if step in (PUT, SAME):
            followed.put(obj, properties=True, statistics=True)
        elif step == READ:
            reader.read()
        else:
            followed.remove(obj, ChangeKind.LOST)
        assert followed.waiting <= len(followed) + size
    followed.put(thing(99, 0), properties=True, statistics=True)
    while reader.read():
        pass
    assert reader.dropped == followed.dropped


@pytest.mark.parametrize("kind", [ChangeKind.LEFT, ChangeKind.DELETED, ChangeKind.LOST])
def test_an_object_that_is_gone_is_not_followed(kind: ChangeKind) -> None:
    followed = FollowedObjects(10, lambda: None)
    obj = thing(1, 1)
    followed.put(obj, properties=True, statistics=True)
    followed.remove(obj, kind)
    assert (list(followed), len(followed), followed.get(obj.object_id)) == ([], 0, None)
    change = followed.take()
    assert change is not None
    assert (change.kind, change.merged, followed.take()) == (kind, 1, None)


def test_kinds_of_changes() -> None:
    assert [kind.gone for kind in ChangeKind] == [False, False, True, True, True]
    assert list(itertools.filterfalse(lambda kind: kind.gone, ChangeKind)) == [ADDED, CHANGED]
