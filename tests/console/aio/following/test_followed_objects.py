"""A picture and its news: whoever reads all news has the same picture, however slowly."""

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
    """Builds its own picture from the news."""

    def __init__(self, picture: FollowedObjects) -> None:
        self.picture = picture
        self.seen: dict[str, int] = {}
        self.told = self.merged = self.dropped = 0

    def read(self) -> bool:
        change = self.picture.take()
        if change is None:
            return False
        name = str(change.object.object_id)
        self.told += 1
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
def test_a_reader_of_all_news_has_the_picture(steps: Sequence[tuple[str, int]]) -> None:
    woken: list[None] = []
    picture = FollowedObjects(1000, lambda: woken.append(None))
    reader = Reader(picture)
    news = 0
    for version, (step, number) in enumerate(steps):
        obj = thing(number, version)
        known = obj.object_id in picture
        match step:
            case "put":
                picture.put(obj, properties=True, statistics=False)
                news += 1
            case "same":
                old = picture.get(obj.object_id)
                if old is not None:
                    picture.put(old, properties=False, statistics=False)  # nothing is different: no news
            case "remove" if known:
                picture.remove(obj, ChangeKind.DELETED)
                news += 1
            case "pass":
                picture.remove(obj, ChangeKind.DELETED)  # came and went
                news += 1
            case "read":
                reader.read()
        assert len(woken) == news
    while reader.read():
        pass
    assert reader.seen == {str(obj.object_id): obj["v"] for obj in picture}
    assert reader.told + reader.merged == news
    assert (picture.merged, picture.dropped, reader.dropped) == (reader.merged, 0, 0)


@given(_steps, st.integers(1, 3))
def test_what_waits_is_bounded_and_what_is_dropped_is_counted(steps: Sequence[tuple[str, int]], size: int) -> None:
    picture = FollowedObjects(size, lambda: None)
    reader = Reader(picture)
    for version, (step, number) in enumerate(steps):
        obj = thing(number, version)
        if step in (PUT, SAME):
            picture.put(obj, properties=True, statistics=True)
        elif step == READ:
            reader.read()
        else:
            picture.remove(obj, ChangeKind.LOST)
        assert len(picture._waiting) <= len(picture) + size
    picture.put(thing(99, 0), properties=True, statistics=True)
    while reader.read():
        pass
    assert reader.dropped == picture.dropped


@pytest.mark.parametrize("kind", [ChangeKind.LEFT, ChangeKind.DELETED, ChangeKind.LOST])
def test_an_object_that_is_gone_is_not_in_the_picture(kind: ChangeKind) -> None:
    picture = FollowedObjects(10, lambda: None)
    obj = thing(1, 1)
    picture.put(obj, properties=True, statistics=True)
    picture.remove(obj, kind)
    assert (list(picture), len(picture), picture.get(obj.object_id)) == ([], 0, None)
    change = picture.take()
    assert change is not None
    assert (change.kind, change.merged, picture.take()) == (kind, 1, None)


def test_kinds_of_changes() -> None:
    assert [kind.gone for kind in ChangeKind] == [False, False, True, True, True]
    assert list(itertools.filterfalse(lambda kind: kind.gone, ChangeKind)) == [ADDED, CHANGED]
