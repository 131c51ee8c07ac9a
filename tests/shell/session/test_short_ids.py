"""Short ids."""

from __future__ import annotations

from qmf_shell.session.short_ids import ShortIds
from shell.fakes import ALPHA, FILESYSTEM

from qmf.views.objects import ObjectIdentity, ObjectKey


def identity(name: str, *, agent: str = ALPHA, epoch: int = 0) -> ObjectIdentity:
    return ObjectIdentity(ObjectKey(name, agent, epoch), FILESYSTEM.key, name)


def test_numbers_start_at_101_and_stay() -> None:
    ids = ShortIds()
    assert [ids.assign(identity(name)) for name in "abab"] == [101, 102, 101, 102]
    assert ids.number(ObjectKey("b", ALPHA)) == 102
    assert ids.number(ObjectKey("z", ALPHA)) is None


def test_the_same_name_at_another_agent_is_another_object() -> None:
    ids = ShortIds()
    assert ids.assign(identity("a")) != ids.assign(identity("a", agent="other"))


def test_a_restarted_agents_object_keeps_its_number_and_has_the_new_epoch() -> None:
    ids = ShortIds()
    number = ids.assign(identity("a", epoch=1))
    assert ids.assign(identity("a", epoch=2)) == number
    entry = ids.entry(number)
    assert entry is not None
    assert entry.identity.key.agent_epoch == 2


def test_destroyed_objects_keep_their_number_and_may_come_back() -> None:
    ids = ShortIds()
    number = ids.assign(identity("a"), created=5)
    ids.mark_deleted(identity("a").key, 9)
    ids.mark_deleted(identity("unlisted").key, 9)
    (entry,) = ids.entries()
    assert (entry.number, entry.created, entry.deleted) == (number, 5, 9)
    ids.assign(identity("a"), created=11)
    (entry,) = ids.entries()
    assert (entry.number, entry.created, entry.deleted) == (number, 11, 0)


def test_unknown_number() -> None:
    assert ShortIds().entry(101) is None
