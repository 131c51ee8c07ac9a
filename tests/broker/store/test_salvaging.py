"""Saving what can be read of a damaged store, so that a broker starts with it."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.store.test_checking import make
from broker.visible_broker import VisibleBroker

from qmf.broker.store.checking import check_store, salvage_store
from qmf.broker.store.database import open_database, transaction
from qmf.broker.store.errors import StoreDamaged
from qmf.broker.store.folder import DATABASE
from qmf.broker.store.unit import Definition, DefinitionKind, Unit
from qmf.broker.store.writer import write_units

PAGE = 4096


def damage(file: Path, first: int, last: int, pattern: bytes = b"\0") -> None:
    """Overwrite pages, counted from 1."""
    with file.open("r+b") as opened:
        opened.seek(PAGE * (first - 1))
        opened.write(pattern * (PAGE * (last - first + 1)))


async def starts(folder: Path) -> dict[str, int]:
    """A broker on the folder: its queues with their depths."""
    async with VisibleBroker(port=0, data_dir=folder) as broker:
        return {queue.name: queue.contents.depth.count for queue in broker.registry.queues}


@pytest.mark.parametrize("pattern", [b"\0", b"\xff", b"\x0d"])
def test_the_beginning_of_a_store_is_gone(tmp_path: Path, pattern: bytes) -> None:
    file = make(tmp_path / "old", messages=3_000, size=500)
    damage(file, 1, file.stat().st_size // PAGE // 5, pattern)
    report = salvage_store(tmp_path / "old", tmp_path / "new")
    assert list(report.messages) == ["recovered-1"]
    count, size = report.messages["recovered-1"]
    assert 2_350 < count < 2_450
    assert size == 500 * count
    text = "\n".join(report.faults)
    assert f"the name of a queue is lost: its {count:,} messages are saved in queue 'recovered-1'" in text
    assert "its first page, which describes the file, is damaged" in text
    assert check_store(tmp_path / "old").messages == report.messages
    assert check_store(tmp_path / "new").faults == ()


async def test_a_broker_starts_with_what_was_saved(tmp_path: Path) -> None:
    file = make(tmp_path / "old", messages=0)
    connection = open_database(file)
    with transaction(connection):
        fields: dict[str, object] = {"exchange": "news", "queue": "orders", "key": "k", "arguments": {}}
        own: dict[str, object] = {**fields, "exchange": "amq.topic"}
        gone: dict[str, object] = {**fields, "exchange": "gone"}
        write_units(
            connection,
            [
                Unit(
                    defined=[
                        Definition(3, DefinitionKind.BINDING, "news\norders\nk", fields),
                        Definition(4, DefinitionKind.BINDING, "amq.topic\norders\nk", own),
                        Definition(5, DefinitionKind.BINDING, "gone\norders\nk", gone),
                        Definition(6, DefinitionKind.QUEUE, "dead", {"durable": True, "alternate-exchange": "gone"}),
                        Definition(7, DefinitionKind.TOPIC, "subject", {"durable": True, "exchange": "gone"}),
                    ]
                )
            ],
        )
    connection.close()
    report = salvage_store(tmp_path / "old", tmp_path / "new")
    assert report.faults == (
        "binding 'gone\\norders\\nk' is left out: its exchange or its queue is lost",
        "queue 'dead' is saved without alternate exchange: that is lost",
        "topic 'subject' is left out: its exchange is lost",
    )
    assert await starts(tmp_path / "new") == {"orders": 0, "dead": 0}


def test_queues_whose_definitions_are_lost_have_their_names(tmp_path: Path) -> None:
    """They are in the index of definitions, which is on another page."""
    file = make(tmp_path / "old")
    damage(file, 2, 2)
    report = salvage_store(tmp_path / "old", tmp_path / "new")
    assert report.messages == {"orders": (10, 1_000)}
    text = "\n".join(report.faults)
    assert "the settings of queue 'orders' are lost: it is saved with the usual ones" in text
    assert "exchange 'news' is lost" in text
    assert check_store(tmp_path / "new").messages == {"orders": (10, 1_000)}


def test_messages_that_were_acknowledged_do_not_come_again(tmp_path: Path) -> None:
    file = make(tmp_path / "old", messages=2_000)
    connection = open_database(file)
    connection.execute("DELETE FROM message WHERE id > 100")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    assert salvage_store(tmp_path / "old", tmp_path / "new").messages == {"orders": (100, 10_000)}
    damage(file, 1, 1)
    report = check_store(tmp_path / "old")
    assert report.messages["orders"][0] >= 100
    assert "which pages are unused is not known: messages that were acknowledged may come again" in report.faults


def test_what_is_in_the_log_only_is_saved(tmp_path: Path) -> None:
    folder = tmp_path / "old"
    file = make(folder)
    connection = open_database(file)
    connection.execute("DELETE FROM message WHERE id = 5")
    copy = tmp_path / "copy"
    copy.mkdir()
    for name in (DATABASE, f"{DATABASE}-wal"):
        (copy / name).write_bytes((folder / name).read_bytes())
    connection.close()
    assert salvage_store(copy, tmp_path / "new").messages == {"orders": (9, 900)}


def test_nothing_can_be_read(tmp_path: Path) -> None:
    (tmp_path / DATABASE).write_bytes(b"no database at all, but text of some length" * 1_000)
    with pytest.raises(StoreDamaged, match="nothing in it can be read"):
        check_store(tmp_path)
    (tmp_path / DATABASE).write_bytes(b"")
    with pytest.raises(StoreDamaged, match="is empty"):
        check_store(tmp_path)
