"""What a reader of a lake returns for a time, on lakes as recorders write them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pipeline.lakes import Shop
from pipeline.shop import ROBBED, TILL

from qmf.console.aio import RemoteObject
from qmf.errors import NotFoundError
from qmf.pipeline import LakeError
from qmf.pipeline.history.classes import schema_of
from qmf.pipeline.history.reader import LakeReader
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.protocol import ObjectId
from qmf.schema import TYPES, ClassKey, ClassSchema, Kind, Property, Reference, Schema, to_xml

T = 1_700_000_000
SECOND = 10**9
KEY = ClassKey("org.example.shop", "till", Kind.DATA, TILL.hash)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


@pytest.fixture
def reader(shop: Shop) -> Iterator[LakeReader]:
    with LakeReader(shop.root) as reader:
        yield reader


def state(reader: LakeReader, at: float) -> dict[str, dict[str, Any]]:
    """The values of the tills at a time, by name."""
    return {item.object_id.object_name: {**item.properties, **item.statistics} for item in objects(reader, at)}


def objects(reader: LakeReader, at: float) -> tuple[RemoteObject, ...]:
    reader.refresh()
    return reader.state(KEY, int(at * SECOND)).objects


def test_a_state_has_the_last_values_up_to_its_time(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added")
    shop.put((T + 10, 1), name="one", limit=5, properties=True)
    shop.put((T + 20, 2), (T + 30, 3))
    assert state(reader, T + 5) == {}
    assert state(reader, T + 10) == {"one": {"name": "one", "limit": 5, "sales": 1}}
    assert state(reader, T + 29.9) == {"one": {"name": "one", "limit": 5, "sales": 2}}
    assert state(reader, T + 1000) == {"one": {"name": "one", "limit": 5, "sales": 3}}
    (found,) = objects(reader, T + 25)
    assert (found.agent, found.timestamps.update, found.class_key) == ("a", (T + 20) * SECOND, KEY)


def test_what_two_recorders_recorded_counts_once(shop: Shop, reader: LakeReader) -> None:
    for each in (shop, Shop(Path(shop.root), run="00000000000000000002_1", name="two")):
        each.agent(T, "added")
        each.beat(*range(T, T + 100, 10))
        each.put((T + 10, 1), (T + 20, 2))
    reader.refresh()
    found = reader.series([KEY], ("a", "one"), ["sales"], T * SECOND, (T + 60) * SECOND)
    assert [sample.time for sample in found.samples] == [(T + 10) * SECOND, (T + 20) * SECOND]


def test_statistics_from_long_before_are_found(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added")
    shop.put((T + 1, 1), object="still", name="still", properties=True)
    shop.put((T + 1, 1), object="busy", name="busy", properties=True)
    for days in range(1, 12):
        shop.put((T + days * 86_400, days), object="busy")
    found = state(reader, T + 11 * 86_400 + 60)
    assert (found["still"]["sales"], found["busy"]["sales"]) == (1, 11)


def test_deleted_objects_are_gone_and_may_come_back(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added")
    shop.put((T + 1, 1), name="one", properties=True)
    shop.put((T + 10, 1), delete=T + 10, properties=True)
    shop.put((T + 20, 0), name="one", properties=True)
    assert len(objects(reader, T + 9)) == 1
    reader.refresh()
    deleted = reader.state(KEY, (T + 15) * SECOND)
    assert (deleted.objects, deleted.destroyed) == ((), 1)
    assert state(reader, T + 20)["one"]["sales"] == 0


@pytest.mark.parametrize(("reason", "left"), [("goodbye", 0), ("silent", 0), ("disconnected", 1)])
def test_the_objects_of_an_agent_that_ended_are_gone(shop: Shop, reader: LakeReader, reason: str, left: int) -> None:
    shop.agent(T, "added")
    shop.put((T + 1, 1), properties=True)
    shop.agent(T + 10, "removed", reason=reason)
    assert len(objects(reader, T + 9)) == 1
    assert len(objects(reader, T + 11)) == left
    present = reader.presences((T + 11) * SECOND)
    assert (present.gap, present.gap_since) == (
        ("the recorder had no connection", (T + 10) * SECOND) if left else ("", 0)
    )


def test_agents_that_did_not_come_back_after_a_lost_connection_are_gone(shop: Shop, reader: LakeReader) -> None:
    for agent in "ab":
        shop.agent(T, "added", agent=agent)
        shop.put((T + 1, 1), agent=agent, properties=True)
        shop.agent(T + 10, "removed", reason="disconnected", agent=agent)
    shop.add(RowKind.GAPS, T + 20, ("connected again", "", 0, None))
    shop.agent(T + 21, "added", agent="b")
    shop.put((T + 1, 1), agent="b", properties=True, received=T + 21)
    assert [item.agent for item in objects(reader, T + 15)] == ["a", "b"]
    assert [item.agent for item in objects(reader, T + 25)] == ["b"]


def test_after_a_restart_only_new_objects_exist(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added")
    shop.put((T + 1, 100), (T + 2, 200), object="old", name="old", properties=True)
    shop.agent(T + 10, "restarted", epoch=2)
    shop.put((T + 11, 3), object="new", epoch=2, name="new", properties=True)
    assert set(state(reader, T + 9)) == {"old"}
    assert set(state(reader, T + 12)) == {"new"}


def test_each_run_of_a_recorder_begins_anew(tmp_path: Path) -> None:
    first = Shop(tmp_path, run=f"{T * SECOND:020d}_1")
    second = Shop(tmp_path, run=f"{(T + 100) * SECOND:020d}_1")
    first.agent(T, "added")
    first.put((T + 1, 1), object="gone", properties=True)
    first.put((T + 1, 1), object="stays", name="stays", properties=True)
    first.beat(T + 5, T + 15)
    second.agent(T + 101, "added")
    second.put((T + 1, 1), object="stays", name="stays", properties=True, received=T + 101)
    second.beat(T + 110)
    with LakeReader(tmp_path) as reader:
        assert set(state(reader, T + 20)) == {"gone", "stays"}
        assert set(state(reader, T + 110)) == {"stays"}
        late = reader.presences((T + 90) * SECOND)
        assert (late.gap, late.gap_since) == ("nothing was recorded", (T + 15) * SECOND)
        assert reader.presences((T + 111) * SECOND).gap == ""


def test_recorders_beside_each_other_are_read_together(tmp_path: Path) -> None:
    for number, agent in enumerate("ab"):
        shop = Shop(tmp_path, run=f"{(T + number) * SECOND:020d}_1", name=f"r{agent}")
        shop.agent(T + 2, "added", agent=agent)
        shop.put((T + 3, 1), agent=agent, properties=True)
        shop.beat(*(T + 3 + 10 * beat for beat in range(5)), agent=agent)
    with LakeReader(tmp_path) as reader:
        assert sorted(item.agent for item in objects(reader, T + 30)) == ["a", "b"]


def test_values_are_those_of_the_wire(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added")
    more: dict[str, Any] = {
        "opened": 1_700_000_000_123_456,
        "opened_ns": 1_700_000_000_123_456_789,
        "limit": (1 << 64) - 1,
    }
    shop.put(
        (T + 1, (1 << 64) - 2), properties=True, options='{"a": [1, null]}', nextRef="org:till:two", queueHigh=9, **more
    )
    values = state(reader, T + 1)["one"]
    assert values == {
        "opened": 1_700_000_000_123_456_789,
        "limit": (1 << 64) - 1,
        "options": {"a": [1, None]},
        "nextRef": ObjectId("org:till:two", "a"),
        "sales": (1 << 64) - 2,
        "queueHigh": 9,
    }


def test_series_name_what_happened_meanwhile(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added")
    shop.put((T + 1, 5), (T + 2, 7), properties=True)
    shop.agent(T + 3, "restarted", epoch=2)
    shop.put((T + 4, 1), epoch=2)
    shop.agent(T + 5, "removed", reason="silent")
    shop.agent(T + 7, "added", epoch=2)
    shop.put((T + 8, 2), epoch=2)
    shop.put((T + 9, 2), epoch=2, delete=T + 9)
    reader.refresh()
    found = reader.series([KEY], ("a", "one"), ["sales"], T * SECOND, (T + 60) * SECOND)
    assert [(item.time // SECOND - T, item.values["sales"], item.epoch, item.begins) for item in found.samples] == [
        (1, 5, 1, True),
        (2, 7, 1, False),
        (4, 1, 2, False),
        (8, 2, 2, True),
        (9, 2, 2, False),
    ]
    assert [(item.time // SECOND - T, item.what) for item in found.incidents] == [
        (0, "agent found"),
        (3, "agent restarted"),
        (5, "agent lost"),
        (7, "agent found"),
        (9, "deleted"),
    ]


def test_events_of_all_classes_come_in_their_order(shop: Shop, reader: LakeReader) -> None:
    shop.events((T + 3, {"till": "x", "amount": 7}), (T + 1, {"till": "y"}))
    shop.add(RowKind.UNTYPED, T + 2, (True, "org.other", "odd", None, 4, '{"n": 1}'))
    shop.add(RowKind.UNTYPED, T + 2, (False, "org.other", "odd", None, None, "{}"))
    shop.commit()
    reader.refresh()
    found = list(reader.events(T * SECOND, (T + 3) * SECOND))
    assert [(item.class_key and item.class_key.name, dict(item.arguments)) for item in found] == [
        ("tillRobbed", {"till": "y"}),
        ("odd", {"n": 1}),
        ("tillRobbed", {"till": "x", "amount": 7}),
    ]
    assert [item.severity for item in found] == [1, 4, 1]
    assert list(reader.events(0, (T + 2) * SECOND, [ROBBED.key])) == [found[0]]


def test_agents_are_those_present_at_the_time(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added", interval=5)
    shop.agent(T + 10, "added", agent="b")
    shop.beat(T + 5, T + 15)
    reader.refresh()
    assert [
        (item.name, item.info.heartbeat_interval, item.info.timestamp) for item in reader.agents((T + 7) * SECOND)
    ] == [("a", 5, (T + 5) * SECOND)]
    assert [item.name for item in reader.agents((T + 17) * SECOND)] == ["a", "b"]
    assert (reader.begin(), reader.end()) == (T * SECOND, (T + 15) * SECOND)


def test_an_agent_was_heard_as_long_as_its_interval_is_open(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added")
    shop.agent(T, "added", agent="b")
    for agent in "ab":
        first = (10.0, T * SECOND, 1, 0, (T + 615) * SECOND)
        shop.add(RowKind.HEARTBEATS, T, first, agent=agent, received=T + 1)
    shop.add(RowKind.HEARTBEATS, T + 40, (10.0, (T + 10) * SECOND, 4, 20 * SECOND, None), received=T + 60)
    for at in range(T, T + 100, 10):
        shop.add(RowKind.HEARTBEATS, at, (None, at * SECOND, 2, 0, None), agent=None)
    shop.commit()
    reader.refresh()

    def heard(at: int) -> dict[str, int]:
        return {item.name: item.info.timestamp // SECOND - T for item in reader.agents((T + at) * SECOND)}

    assert heard(35) == {"a": 30, "b": 30}
    assert heard(75) == {"a": 40, "b": 70}
    assert heard(500) == {"a": 40, "b": 90}


def test_a_compacted_lake_says_the_same(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added")
    for number in range(5):
        shop.put((T + number, number), name="one", properties=number == 0)
    before = state(reader, T + 3)
    path = shop.lake.tables_of(shop.lake.class_versions())[0]
    shop.lake.table(path).delta().optimize.compact()
    # What was selected before the rows were moved is still found.
    assert {
        item.object_id.object_name: {**item.properties, **item.statistics}
        for item in reader.state(KEY, (T + 3) * SECOND).objects
    } == before
    assert state(reader, T + 3) == before == {"one": {"name": "one", "sales": 3}}


def test_what_is_committed_later_is_seen_after_a_refresh(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added")
    reader.refresh()
    assert reader.classes() == []
    shop.put((T + 1, 1), properties=True)
    assert state(reader, T + 1) == {"one": {"sales": 1}}


def test_schemas_without_xml_come_from_their_columns(shop: Shop, reader: LakeReader) -> None:
    shop.put((T, 1))
    reader.refresh()
    plain = reader.schema(KEY)
    assert isinstance(plain, ClassSchema)
    assert [item.name for item in plain.properties] == [item.name for item in TILL.properties]
    assert [item.type.name for item in plain.statistics] == [item.type.name for item in TILL.statistics]


def test_a_class_that_refers_to_others_is_read_from_its_xml() -> None:
    disk = ClassSchema(
        package="org.example.shop",
        name="Disk",
        properties=(
            Property(name="name", type=TYPES["sstr"], index=True, desc="Its name"),
            Property(name="systemRef", type=TYPES["objId"], references=Reference(None, "System")),
        ),
    )
    read = schema_of(ClassVersion.from_schema(disk), to_xml(Schema(package=disk.package, classes=(disk,), events=())))
    assert isinstance(read, ClassSchema)
    assert [(item.index, item.desc) for item in read.properties] == [(True, "Its name"), (False, None)]
    assert read.properties[1].references == Reference(None, "System")


def test_the_xml_of_a_schema_is_read() -> None:
    version = ClassVersion.from_schema(TILL)
    read = schema_of(version, to_xml(Schema(package=TILL.package, classes=(TILL,), events=())))
    assert isinstance(read, ClassSchema)
    assert (read.key, read.statistics) == (TILL.key, TILL.statistics)
    assert [item.index for item in read.properties] == [item.index for item in TILL.properties]
    event = schema_of(
        ClassVersion.from_schema(ROBBED), to_xml(Schema(package=TILL.package, classes=(), events=(ROBBED,)))
    )
    assert event == ROBBED


def test_a_folder_that_is_no_lake_is_refused(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="not a lake"):
        LakeReader(tmp_path)


def test_an_unknown_class_is_refused(reader: LakeReader) -> None:
    with pytest.raises(NotFoundError):
        reader.schema(KEY)


def test_a_damaged_file_is_named(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added")
    shop.put((T, 1))
    reader.refresh()
    for path in Path(shop.root).glob("objects/**/*.parquet"):
        path.write_bytes(b"nothing")
    with pytest.raises(LakeError, match="parquet"):
        reader.state(KEY, T * SECOND)


def test_series_go_on_over_runs_of_the_recorder(tmp_path: Path) -> None:
    first = Shop(tmp_path, run=f"{T * SECOND:020d}_1")
    second = Shop(tmp_path, run=f"{(T + 100) * SECOND:020d}_1")
    first.agent(T + 1, "added")
    first.put((T + 2, 5), properties=True, name="one")
    second.agent(T + 101, "added")
    second.put((T + 102, 9), (T + 103, 10), properties=False, name="one")
    with LakeReader(tmp_path) as reader:
        reader.refresh()
        found = reader.series([KEY], ("a", "one"), ["sales", "name"], (T + 1) * SECOND, (T + 200) * SECOND)
    assert [dict(item.values) for item in found.samples] == [{"name": "one", "sales": 5}, {"sales": 9}, {"sales": 10}]
    assert [(item.time // SECOND - T, item.what) for item in found.incidents] == [
        (1, "agent found"),
        (100, "recorder started"),
    ]


def test_long_after_the_recording_its_end_is_named(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added")
    shop.put((T + 1, 1), properties=True)
    shop.beat(T + 10, T + 20)
    reader.refresh()
    late = reader.presences((T + 3 * 86_400) * SECOND)
    assert (late.gap, late.gap_since) == ("nothing was recorded", (T + 20) * SECOND)
    assert len(objects(reader, T + 3 * 86_400)) == 1


def test_a_deleted_object_has_no_later_incidents(shop: Shop, reader: LakeReader) -> None:
    shop.agent(T, "added")
    shop.put((T + 1, 5), properties=True)
    shop.put((T + 2, 5), properties=True, delete=T + 2)
    shop.agent(T + 9, "restarted", epoch=2)
    reader.refresh()
    found = reader.series([KEY], ("a", "one"), ["sales"], T * SECOND, (T + 60) * SECOND)
    assert [item.what for item in found.incidents] == ["agent found", "deleted"]
