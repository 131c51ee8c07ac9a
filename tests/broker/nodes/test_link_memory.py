"""What a broker remembers of links on which messages come."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from qmf.broker.nodes import link_memory
from qmf.broker.nodes.link_memory import LinkMemories, LinkMemory


class Keeper:
    """Keeps memories, and has room in the current unit or not."""

    def __init__(self) -> None:
        self.defined: list[str] = []
        #: Tags of records, by link and number.
        self.kept: dict[tuple[int, int], list[int]] = {}
        self.stores = True

    def define(self, name: str) -> int:
        self.defined.append(name)
        return len(self.defined)

    def undefine(self, id: int) -> None:
        self.kept = {key: tags for key, tags in self.kept.items() if key[0] != id}

    def remember(self, id: int, record: int, tags: Sequence[int]) -> bool:
        if self.stores:
            assert (id, record) not in self.kept
            self.kept[id, record] = list(tags)
        return self.stores

    def forget(self, id: int, records: Sequence[int]) -> None:
        for record in records:
            del self.kept[id, record]


def test_a_message_is_remembered_from_its_acceptance_until_its_sender_knows_that() -> None:
    keeper = Keeper()
    memory: LinkMemory[str] = LinkMemory(7, keeper)
    memory.begin({1: "end"})
    assert (memory.storing, 1 in memory, keeper.kept) == ({1: "end"}, False, {(7, 1): [1]})
    memory.accept([1])
    assert (memory.storing, memory.accepted) == ({}, [1])
    memory.confirm([1])
    assert (memory.accepted, keeper.kept) == ([], {})


def test_what_is_not_stored_is_remembered_in_memory_alone() -> None:
    keeper = Keeper()
    keeper.stores = False
    memory: LinkMemory[str] = LinkMemory(7, keeper)
    memory.begin({1: "end"})
    memory.accept([1])
    assert memory.accepted == [1]
    memory.confirm([1])  # the keeper is not asked to forget it
    assert 1 not in memory


def test_what_could_not_be_stored_was_not_accepted() -> None:
    memory: LinkMemory[str] = LinkMemory()
    memory.begin({1: "end"})
    memory.refuse(1)
    assert (memory.storing, memory.accepted, memory.lasting) == ({}, [], False)


def test_who_waits_until_nothing_is_on_the_way_to_the_disk() -> None:
    memory: LinkMemory[str] = LinkMemory()
    called: list[int] = []
    memory.when_stored(lambda: called.append(0))
    for tag in (1, 2):
        memory.begin({tag: "end"})
        memory.when_stored(lambda tag=tag: called.append(tag))  # type: ignore[misc]
    memory.accept([1])
    memory.accept([1])
    assert called == [0]
    memory.refuse(2)
    assert called == [0, 1, 2]


def test_the_sender_lists_what_it_does_not_know() -> None:
    keeper = Keeper()
    keeper.kept = {(7, 1): [3], (7, 2): [4, 5]}
    memory: LinkMemory[str] = LinkMemory(7, keeper, {1: [3], 2: [4, 5]})
    memory.keep({4})
    assert (memory.accepted, keeper.kept) == ([4], {(7, 2): [4, 5]})


def test_messages_that_were_published_together_are_forgotten_together() -> None:
    keeper = Keeper()
    keeper.kept = {(7, 5): [1]}
    memory: LinkMemory[str] = LinkMemory(7, keeper, {5: [1]})
    memory.begin({2: "end", 3: "end"})
    memory.begin({4: "end"})
    memory.begin({})
    assert keeper.kept == {(7, 5): [1], (7, 6): [2, 3], (7, 7): [4]}
    memory.accept([2, 3, 4])
    assert (memory.confirm([1, 3, 4, 9]), memory.accepted) == (3, [2])
    assert keeper.kept == {(7, 6): [2, 3]}
    assert (memory.confirm([2]), keeper.kept) == (1, {})


def test_what_comes_again_before_it_is_forgotten_is_remembered_once() -> None:
    keeper = Keeper()
    memory: LinkMemory[str] = LinkMemory(7, keeper)
    memory.begin({1: "one"})
    memory.begin({1: "other"})  # two messages with the same id, neither of which is on the disk yet
    assert keeper.kept == {(7, 2): [1]}
    memory.accept([1])
    memory.begin({1: "third"})
    memory.accept([1])
    assert (keeper.kept, memory.accepted) == ({(7, 3): [1]}, [1])


def test_messages_are_new_unless_they_are_accepted_or_stored_meanwhile() -> None:
    memory: LinkMemory[str] = LinkMemory()
    memory.begin({1: "end"})
    memory.accept([2])
    assert [memory.is_new(tags) for tags in ([1, 3], [2, 3], [3, None])] == [False, False, True]


def test_the_first_ones_are_forgotten_where_no_sender_says_what_it_knows() -> None:
    memory: LinkMemory[str] = LinkMemory()
    for tag in (9, 1, 5):
        memory.accept([tag])
    memory.trim(2)
    assert memory.accepted == [1, 5]


def test_links_are_found_by_name_until_they_are_deleted() -> None:
    keeper = Keeper()
    memories = LinkMemories(keeper, {"kept": (8, {1: [1]})})
    assert memories.find("kept").accepted == [1]
    assert memories.find("new") is memories.find("new")
    assert (keeper.defined, memories.names("ne"), len(memories)) == (["new"], ["new"], 2)
    memories.remove("new")
    memories.remove("new")
    assert memories.names("") == ["kept"]


def test_too_many_links(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(link_memory, "MAX_REMEMBERED", 3)
    memories = LinkMemories()
    memories.find("used").users = 1
    memories.find("open").accept([1])
    for name in ("one", "two"):  # each is forgotten for the next one: that loses nothing
        memories.find(name)
    assert (memories.names(""), caplog.text) == (["used", "open", "two"], "")
    memories.find("two").accept([1])
    memories.find("used").accept([1])
    memories.find("three")
    assert memories.names("") == ["used", "two", "three"]
    assert "'open' is forgotten" in caplog.text
