"""Audits of a lake: a batch and a stream in pieces make the same tables, and running them again changes nothing."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs
import pytest
from pipeline.lakes import HERE, Shop
from pipeline.object_store import s3_store
from pipeline.shop import TILL
from pipeline.tills import QUEUE_DECLARE, Till, read

from qmf.agent.requests.call_audit import METHOD_CALLED
from qmf.pipeline import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.record.buffers import to_json
from qmf.schema import TYPES, Property

pytest.importorskip("duckdb")

from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.stream import AuditStream
from qmf.pipeline.audit.tables import AuditOptions, StoredParts, made_parts
from qmf.pipeline.runners.process import ProcessRunner
from qmf.pipeline.runners.runner import Runner

pytestmark = pytest.mark.slow

HUGE = (1 << 64) - 1
RICHER = ClassVersion.from_schema(
    attrs.evolve(TILL, hash=UUID(int=0x22), properties=(*TILL.properties, Property(name="owner", type=TYPES["sstr"])))
)
CALLED = ClassVersion.from_schema(METHOD_CALLED)


def first_half(shop: Shop) -> None:
    """An agent starts, with a till whose limit rises."""
    till = Till(shop)
    shop.agent(100, "added")
    till.publish(101, name="one", limit=10, options=to_json({"a": 1}), opened_ns=77)
    till.publish(102, statistics=True, name="one", limit=10, sales=5)
    shop.beat(110, 120)
    till.publish(120, name="one", limit=HUGE, options=to_json({"a": 1}), opened_ns=77)
    shop.events((121, {"till": "one", "amount": 7}), (122, {"till": "one", "amount": 7}))
    shop.events((123, {"rhost": "127.0.0.1:1", "user": "me", "qName": "q", "disp": "created"}), table=QUEUE_DECLARE)


def second_half(shop: Shop) -> None:
    """The same event again, a call, another property, the end of a till and of its agent; and late rows."""
    shop.events((121, {"till": "one", "amount": 7}))
    called = {
        **{"user": "you", "replyTo": "r", "object": "p:c:one", "object_agent": "a", "method": "open"},
        **{"arguments": to_json({"amount": 3}), "code": 7, "text": "jammed", "results": "{}", "duration": 5},
    }
    shop.events((130, called), table=CALLED)
    shop.add(RowKind.UNTYPED, 131, (True, "p", "strange", None, 3, '{"x":1}'))
    till = Till(shop)
    till.publish(125, name="one", limit=10)  # late: committed after later ones would be
    till.publish(140, table=RICHER, name="one", limit=HUGE, owner="<me>")
    till.publish(150, table=RICHER, deleted=149, name="one", limit=HUGE, owner="<me>")
    Till(shop, "two").publish(145, name="two", limit=1)
    shop.agent(160, "removed", reason="goodbye")
    shop.commit()


def test_batch_and_stream_agree(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    first_half(shop)
    batch = AuditOptions(lake=shop.root, out=str(tmp_path / "batch"))
    stream = AuditOptions(lake=shop.root, out=str(tmp_path / "stream"))
    read_rows = []
    for write in (None, second_half, None):
        if write is not None:
            write(shop)
        # Each continues where the one before it ended.
        following = AuditStream(HERE, stream)
        read_rows.append(following.step())
        assert following.step() == 0
    assert [bool(rows) for rows in read_rows] == [True, True, False]
    lines: list[str] = []
    counts = audit_lake(HERE, batch, lines.append)
    found = read(tmp_path / "batch")
    assert counts == {name: len(rows) for name, rows in found.items()}
    assert sorted(lines) == sorted(f"{name}: {count} rows" for name, count in counts.items())
    assert read(tmp_path / "stream") == found
    assert audit_lake(HERE, batch, lines.append) == counts
    assert read(tmp_path / "batch") == found

    # The limit went up, down for a moment, and up again; it is a 64-bit number.
    limits = [row for row in found["history"] if row["object"] == "one" and row["property"] == "limit"]
    limits.sort(key=lambda row: row["valid_from_ns"])
    steps = [
        (row["value"], row["valid_from_ns"] // 10**9, row["valid_to_ns"] // 10**9, row["ended_by"]) for row in limits
    ]
    assert steps == [
        ("10", 101, 120, "changed"),
        (str(HUGE), 120, 125, "changed"),
        ("10", 125, 140, "changed"),
        (str(HUGE), 140, 149, "destroyed"),
    ]
    assert [row["previous"] for row in limits] == [None, "10", str(HUGE), "10"]
    values = {(row["property"], row["value"]) for row in found["history"]}
    assert {("owner", "<me>"), ("opened", "77"), ("options", '{"a":1}'), ("nextRef", None)} <= values
    # Each robbery once; they differ in time only.
    robberies = [row for row in found["events"] if row["class"] == "tillRobbed"]
    assert [json.loads(row["arguments"]) for row in robberies] == [{"till": "one", "amount": "7"}] * 2
    assert [row["class"] for row in found["events"] if row["package"] == "p"] == ["strange"]
    calls = [(row["user"], row["operation"], row["target"], row["result"], row["text"]) for row in found["calls"]]
    assert sorted(calls) == [
        ("me", "declare queue", "q", "ok", None),
        ("you", "open", "p:c:one", "failed", "jammed"),
    ]
    assert {row["object"]: row["ended_by"] for row in found["lives"]} == {"one": "destroyed", "two": "agent ended"}
    assert {(row["state"], row["cause"], row["ongoing"]) for row in found["availability"]} == {
        ("up", "added", False),
        ("down", "goodbye", True),
    }


@pytest.mark.parametrize("on_spark", [False, True])
def test_several_tasks_make_the_same_tables(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, on_spark: bool
) -> None:
    monkeypatch.chdir(tmp_path)  # the executors have another working directory
    runner: Runner = ProcessRunner(task_rows=3)
    if on_spark:
        from qmf.pipeline.runners.spark import SparkRunner

        runner = SparkRunner(request.getfixturevalue("spark"), task_rows=8)
    shop = Shop("lake")
    first_half(shop)
    following = AuditStream(runner, AuditOptions(lake="lake", out="stream"))
    assert following.step() > 0
    second_half(shop)
    assert following.step() > 0
    counts = audit_lake(HERE, AuditOptions(lake="lake", out="here"), lambda _text: None)
    assert audit_lake(runner, AuditOptions(lake="lake", out="batch"), lambda _text: None) == counts
    assert read(tmp_path / "batch") == read(tmp_path / "here") == read(tmp_path / "stream")


def test_a_table_that_an_executor_lacks_is_an_error(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    first_half(shop)
    files = {path: shop.lake.table(path).snapshot().files for path in shop.lake.paths()}
    assert made_parts(HERE, AuditOptions(lake=shop.root, out=""), files).table().num_rows
    elsewhere = made_parts(HERE, AuditOptions(lake=str(tmp_path / "empty"), out=""), files)
    with pytest.raises(PipelineError, match="no table events/"):
        elsewhere.table()


def test_events_are_added_once_though_a_kill_came_before_the_last_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path / "lake")
    first_half(shop)
    options = AuditOptions(lake=shop.root, out=str(tmp_path / "stream"))

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(StoredParts, "store", killed)
        with pytest.raises(KeyboardInterrupt):
            AuditStream(HERE, options).step()
    second_half(shop)  # the next step reads more files than the one that was not completed
    following = AuditStream(HERE, options)
    assert following.step() > 0
    batch = AuditOptions(lake=shop.root, out=str(tmp_path / "batch"))
    audit_lake(HERE, batch, lambda _text: None)
    assert read(tmp_path / "stream") == read(tmp_path / "batch")


def test_a_stream_makes_all_tables_though_nothing_is_in_them_yet(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    Till(shop).publish(101, name="one", limit=10)
    shop.commit()
    following = AuditStream(HERE, AuditOptions(lake=shop.root, out=str(tmp_path / "stream")))
    following.step()
    found = read(tmp_path / "stream")
    assert {name: len(rows) for name, rows in found.items() if not rows} == {"events": 0, "calls": 0, "availability": 0}


def test_a_lake_in_an_object_store(tmp_path: Path) -> None:
    pytest.importorskip("moto", reason="moto is not installed")
    local = Shop(tmp_path / "lake")
    with s3_store() as store:
        remote = Shop(f"{store.url}/lake", options=store.options)
        for shop in (local, remote):
            first_half(shop)
            second_half(shop)
        outs: list[dict[str, list[dict[str, Any]]]] = []
        for shop, options in ((local, {}), (remote, store.options)):
            audit = AuditOptions(lake=shop.root, out=str(tmp_path / f"out-{len(outs)}"), storage=options)
            audit_lake(HERE, audit, lambda _text: None)
            outs.append(read(tmp_path / f"out-{len(outs)}"))
    for rows in outs:  # the rows of two recorders
        for row in rows["events"]:
            row.pop("run")
    assert outs[0] == outs[1]
    assert all(outs[1].values())


def test_a_folder_without_a_lake(tmp_path: Path) -> None:
    options = AuditOptions(lake=str(tmp_path / "x"), out=str(tmp_path / "out"))
    with pytest.raises(PipelineError, match="no lake"):
        audit_lake(HERE, options, print)
    following = AuditStream(HERE, options)  # it waits for the lake
    assert following.step() == 0
