"""Cutting answers into parts: by number, by size, and around what cannot be encoded; schemas in parts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from agent.asking import ask
from support.fake_bus import FakeBus

from qmf.agent import Agent
from qmf.agent.metrics import AgentMetrics
from qmf.agent.sending.message_batcher import MAX_BYTES, BatchedSender, MessageBatcher
from qmf.protocol import SchemaIdsResponse, SchemasResponse, What
from qmf.schema import TYPES, ClassKey, ClassSchema, Property

Message = tuple[list[int], bool, bool]


class Wire:
    """Encodes numbers as so many bytes, and remembers what was sent: items, `partial`, and whether it was the last."""

    def __init__(self, bad: Sequence[int] = ()) -> None:
        self.bad = bad
        self.sent: list[Message] = []
        self._built: tuple[list[int], bool] = ([], False)

    def encode(self, items: Sequence[int], partial: bool) -> bytes:
        if set(items) & set(self.bad):
            raise ValueError("cannot be encoded")
        self._built = (list(items), partial)
        return bytes(sum(items))

    async def send(self, data: bytes, last: bool) -> None:
        assert len(data) == sum(self._built[0])
        self.sent.append((*self._built, last))


async def cut(items: Sequence[int], wire: Wire, most: int = 4) -> list[Message]:
    parts = BatchedSender(MessageBatcher(AgentMetrics(), most), wire.encode, wire.send)
    for item in items:
        await parts.add(item)
    await parts.finish()
    assert parts.count == len(items)
    return wire.sent


BIG = MAX_BYTES // 2 + 1

CUTS: list[tuple[list[int], list[list[int]]]] = [
    ([], [[]]),
    ([1], [[1]]),
    ([1, 2, 3, 4], [[1, 2, 3, 4]]),
    ([1, 2, 3, 4, 5], [[1, 2, 3, 4], [5]]),
    ([BIG, BIG], [[BIG], [BIG]]),
    ([BIG, 1, 2, BIG], [[BIG, 1], [2, BIG]]),
    ([3 * BIG, 1], [[3 * BIG], [1]]),
    # After large ones the parts are smaller.
    ([BIG] * 4 + [1, 1], [[BIG], [BIG], [BIG], [BIG], [1], [1]]),
]


@pytest.mark.parametrize(("items", "expected"), CUTS)
async def test_parts(items: list[int], expected: list[list[int]]) -> None:
    last = len(expected) - 1
    assert await cut(items, Wire()) == [(part, number != last, number == last) for number, part in enumerate(expected)]


@pytest.mark.parametrize(("items", "expected"), CUTS)
async def test_items_may_come_many_at_a_time(items: list[int], expected: list[list[int]]) -> None:
    wire = Wire()
    parts = BatchedSender(MessageBatcher(AgentMetrics(), 4), wire.encode, wire.send)
    half = len(items) // 2
    await parts.extend(items[:half])
    await parts.extend(items[half:])
    await parts.finish()
    assert (parts.count, [part for part, _, _ in wire.sent]) == (len(items), expected)


@pytest.mark.parametrize(
    ("items", "bad", "expected"),
    [
        ([1, 2, 3], [2], [[1], [3]]),
        ([1, 2, 3], [3], [[1], [2], []]),
        ([1], [1], [[]]),
        ([1, 2, 3, 4, 5], [5], [[1, 2, 3, 4], []]),
        ([1, 2, 3, 4, 5], [1, 2, 3, 4], [[5]]),
    ],
)
async def test_what_cannot_be_encoded_is_left_out(items: list[int], bad: list[int], expected: list[list[int]]) -> None:
    sent = await cut(items, Wire(bad))
    assert [part for part, _, _ in sent] == expected
    assert [partial for _, partial, _ in sent] == [True] * (len(expected) - 1) + [False]
    assert [last for _, _, last in sent] == [False] * (len(expected) - 1) + [True]


def schemas(count: int, desc: str) -> list[ClassSchema]:
    return [
        ClassSchema(
            package="org.example.many",
            name=f"class{number:04}",
            properties=(Property(name="a", type=TYPES["sstr"], desc=desc),),
        )
        for number in range(count)
    ]


async def test_many_schema_ids_come_in_parts(agent: Agent, bus: FakeBus) -> None:
    agent.register(*schemas(1500, ""))
    answers = await ask(bus, what=What.SCHEMA_ID)
    assert len(answers) > 1
    assert max(len(data) for data in bus.sent) <= MAX_BYTES
    assert [answer.partial for answer in answers] == [True] * (len(answers) - 1) + [False]
    keys = [
        key.name for answer in answers if isinstance(answer.content, SchemaIdsResponse) for key in answer.content.keys
    ]
    assert keys == [f"class{number:04}" for number in range(1500)]


async def test_large_schemas_come_in_parts(agent: Agent, bus: FakeBus) -> None:
    many = schemas(3, "x" * 25_000)
    agent.register(
        *[ClassSchema(package=f"p{n}", name="same", properties=item.properties) for n, item in enumerate(many)]
    )
    answers = await ask(bus, what=What.SCHEMA, class_key=ClassKey("", "same"))
    assert [answer.partial for answer in answers] == [True, False]
    found = [
        schema.package
        for answer in answers
        if isinstance(answer.content, SchemasResponse)
        for schema in answer.content.schemas
    ]
    assert found == ["p0", "p1", "p2"]
