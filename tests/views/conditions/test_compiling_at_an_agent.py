"""An agent answers a predicate with every object that passes the test here; with no others where it can say all."""

from __future__ import annotations

import random
from typing import Any

from views.conditions.shelves import Shelf, compiled, passing

from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import Client, RemoteObject
from qmf.schema import parse_schema
from qmf.testing import FakeAgent

SCHEMA = parse_schema(
    b"""<schema package="org.example.store">
      <class name="Shelf">
        <property name="name" type="sstr" access="RC" index="y"/>
        <property name="label" type="lstr" optional="y"/>
        <property name="open" type="bool" optional="y"/>
        <property name="limit" type="int64" optional="y"/>
        <property name="price" type="double" optional="y"/>
        <statistic name="sold" type="uint32"/>
        <statistic name="age" type="deltaTime"/>
      </class>
    </schema>""",
    "store.xml",
)
#: With values of the same meaning at agents, and others.
ALIKE = ["sold>5", "sold = 3", "open=yes", "open=no", "name==s/7", "label==Old", "limit<=-1", "age>=2s", "has sold"]
ALIKE += ["has label", "has open"]
DIFFERENT = ["label!=old", "label=old", "label~^O", "price>1", "price=2", "limit!=1", "sold~1", "has price", "-s/1"]
DIFFERENT += ["sold<2.5", "not open=yes"]


async def test_the_agent_and_the_test_agree() -> None:
    exchange = MemoryExchange()
    chance = random.Random(7)
    conditions = [*ALIKE, *DIFFERENT]
    for _ in range(40):
        one, two, three = chance.sample(conditions, 3)
        conditions.append(chance.choice(["({} or {}) {}", "{} {} or {}", "{} not ({} {})"]).format(one, two, three))
    async with FakeAgent(exchange, SCHEMA) as fake, Client(MemoryBus(exchange)) as client:
        for number in range(40):
            optional = {
                "label": chance.choice(["", "old", "Old", "new"]),
                "open": chance.choice([True, False]),
                "limit": chance.randrange(-2, 3),
                "price": chance.choice([0.0, 1.5, 2.0]),
            }
            given: dict[str, Any] = {name: value for name, value in optional.items() if chance.random() < 0.7}
            fake.add("Shelf", name=f"s/{number}", sold=chance.randrange(10), age=number * 10**8, **given)
        shelves = list(map(_values, await client.objects("shelf")))
        for text in conditions:
            answered = [
                {**obj.properties, **obj.statistics}
                for obj in await client.objects("shelf", where=compiled(text).predicate)
            ]
            names = {item["name"] for item in passing(text, shelves)}
            assert {item["name"] for item in passing(text, answered)} == names, text
            if text in ALIKE:
                assert {item["name"] for item in answered} == names, text
                assert 0 < len(names) < 40, text


def _values(obj: RemoteObject) -> Shelf:
    return {**obj.properties, **obj.statistics}
