"""RequestDispatcher captured from the consoles of other projects get the right kind of answer."""

from __future__ import annotations

import json
import logging
import random
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet
from agent.warehouse import Site
from support.fake_bus import FakeBus

from qmf.agent import Agent, Attribute, ManagedObject
from qmf.protocol import (
    CommandComplete,
    Envelope,
    ExceptionResponse,
    LocateResponse,
    ObjectsResponse,
    SchemaIdsResponse,
    SchemasResponse,
    V1Message,
)
from qmf.schema import TYPES, ClassSchema, Property, Statistic
from qmf.testing import ManualClock

VECTORS = Path(__file__).resolve().parents[4] / "shared" / "protocol" / "vectors"

pytestmark = pytest.mark.skipif(not VECTORS.is_dir(), reason=f"no protocol vectors beside the checkout: {VECTORS}")


class Widget(ManagedObject):
    _qmf_schema_ = ClassSchema(
        package="org.example.widgets",
        name="widget",
        properties=(Property(name="name", type=TYPES["sstr"], index=True),),
        statistics=(Statistic(name="count", type=TYPES["uint32"]),),
    )
    name = Attribute[str]("name")
    count = Attribute[int]("count")


# Files by pattern, with what answers them: the content's class, and how many objects are in it.
ANSWERS: list[tuple[str, type[object] | None, int | None]] = [
    ("*agent_locate*", LocateResponse, None),
    ("legacy-python-console-02-*", SchemaIdsResponse, None),
    ("legacy-python-console-03-*", ObjectsResponse, 0),
    ("libqmf2-console-*-01-*", SchemaIdsResponse, None),
    ("libqmf2-console-*-03-*", ObjectsResponse, None),
    ("libqmf2-console-*-04-*", ObjectsResponse, 5),
    ("libqmf2-console-*-05-*", ObjectsResponse, 0),
    ("libqmf2-console-*-06-*", ExceptionResponse, None),
    ("libqmf2-console-*-08-*", SchemaIdsResponse, None),
    ("libqmf2-console-*-09-*", SchemasResponse, None),
    ("req-method-*", ExceptionResponse, None),
    ("req-query-class-*", ObjectsResponse, 0),
    ("req-query-object_id-*", ObjectsResponse, 0),
    ("req-query-schema-*", SchemasResponse, None),
    ("req-query-where-*", ObjectsResponse, 1),
    ("libqmf2-console-*-v1_S*", CommandComplete, None),
    ("req-v1-S-*", CommandComplete, None),
    ("req-v1-[BGM]*", None, None),
]

CASES = [
    pytest.param(path, kind, count, id=path.stem)
    for pattern, kind, count in ANSWERS
    for path in sorted(VECTORS.glob(f"{pattern}.json"))
    if "_response" not in path.stem
]


def _values(case: ParameterSet) -> tuple[Path, object, object]:
    path, kind, count = case.values
    assert isinstance(path, Path)
    return path, kind, count


@pytest.mark.parametrize(("path", "kind", "count"), CASES)
async def test_a_captured_request(
    bus: FakeBus, clock: ManualClock, path: Path, kind: type[object] | None, count: int | None
) -> None:
    vector = json.loads(path.read_text(encoding="utf-8"))
    data = bytes.fromhex(vector["hex"])
    properties = vector["sections"]["properties"]
    async with Agent(bus, vendor="example.org", product="proton-agent", instance="a1", clock=clock) as agent:
        agent.add(Site(name="a"))
        for number in range(5):
            widget = Widget(name=f"widget-{number}")
            widget.count = number
            agent.add(widget)
        bus.take()
        answers = await bus.request_raw(data, key="console.#")
        assert agent.statistics.malformed == 0
        if kind is None:
            assert answers == []
            return
        (answer,) = answers
        assert f"string '{answer.to}/{answer.subject}'" == properties["reply-to"]
        if isinstance(answer, V1Message):
            assert [type(frame) for frame in answer.frames] == [kind]
            return
        assert isinstance(answer, Envelope)
        assert type(answer.content) is kind
        wanted = properties.get("correlation-id")
        assert wanted is None or wanted == f"string '{answer.correlation_id}'"
        if isinstance(answer.content, ObjectsResponse) and count is not None:
            assert len(answer.content.objects) == count


@pytest.mark.slow
async def test_damaged_requests_do_no_harm(
    agent: Agent, bus: FakeBus, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    chance = random.Random(7)
    agent.add(Widget(name="widget-0"))
    requests = [bytes.fromhex(json.loads(path.read_text(encoding="utf-8"))["hex"]) for path, *_ in map(_values, CASES)]
    for data in requests * 40:
        damaged = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        await bus.request_raw(bytes(damaged[: chance.choice((len(data), chance.randrange(len(data))))]))
    assert agent.statistics.malformed > 0
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert len(caplog.records) < 20


def test_every_captured_request_is_tried() -> None:
    requests = [*VECTORS.glob("*console*.json"), *VECTORS.glob("req-*.json")]
    assert {_values(case)[0] for case in CASES} == set(requests)
