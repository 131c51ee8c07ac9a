"""Our agent, read by a real libqmf2 console on a real qpidd, over both of its client protocols.

The console is ``console.cpp``; `support.libqmf2` tells what the environment has to say.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from support.examples import examples
from support.libqmf2 import (
    PROTOCOLS,
    URL,
    Driven,
    Typed,
    address,
    compiled,
    driven,
    escaped,
    needs_libqmf2,
    read,
    unescaped,
    words,
)

from qmf.agent import MethodError, ObjectId
from qmf.agent.agent_identity import AgentIdentity
from qmf.protocol import AgentInfo, matches
from qmf.schema import ClassSchema, EventSchema, read_schema
from qmf.testing import FakeAgent, InThread

pytestmark = [pytest.mark.slow, needs_libqmf2]

SCHEMA = read_schema(Path(__file__).with_name("things.xml"))
PACKAGE = SCHEMA.package
TOKEN = uuid.UUID("12345678-1234-5678-1234-567812345678")

#: Types of libqmf2, see qmf/SchemaTypes.h.
BOOL, INT, FLOAT, STRING, MAP, LIST, UUID = range(2, 9)
READ_CREATE, READ_WRITE, READ_ONLY = range(1, 4)


def full(obj: Any) -> None:
    """Give an object a value of each type, at the end of its range."""
    obj.small, obj.medium, obj.large, obj.huge = 100, 2**16 - 1, 2**32 - 1, 2**64 - 1
    obj.cold, obj.deep, obj.below, obj.bottom = -(2**7), -(2**15), -(2**31), -(2**63)
    obj.on, obj.text, obj.moment = True, "Größe % 長", 1_700_000_000_000_000_000
    obj.while_ = 5
    obj.half, obj.whole, obj.token = 0.5, 0.1, TOKEN
    obj.options, obj.tags = {"a": 1, "deep": {"b": [True, "x"]}}, ["x", 2, {"c": None}]
    obj.turns.inc(7)
    obj.users.set(9)
    obj.users.set(4)
    obj.delay.sample(10)
    obj.delay.sample(30)


def echo(obj: Any, **inputs: object) -> Mapping[str, object]:
    return inputs


def refuse(obj: Any) -> Mapping[str, object]:
    raise MethodError("nichts für ungut", code=65_537)


def serve(instance: str, count: int = 12) -> FakeAgent:
    """An agent with things."""
    fake = FakeAgent(URL, SCHEMA, name=f"example.org:things:{instance}", epoch=3, interval=3600.0)
    for number in range(count):
        obj = fake.add("Thing", name=f"thing-{number}", large=number, whole=number / 2, on=number % 2 == 0)
        if number == 1:
            full(obj)
        if number == 2:
            obj.nextRef = fake.agent.objects[0]
            obj.label = "two"
    fake.on("Thing", "echo", echo)
    fake.on("Thing", "add", lambda obj, one, two: {"sum": one + two})
    fake.on("Thing", "refuse", refuse)
    fake.on("Thing", "rest", lambda obj: None)
    return fake


@pytest.fixture(scope="module")
def fake() -> Iterator[InThread[FakeAgent]]:
    with InThread(lambda: serve(str(uuid.uuid4()))) as fake:
        yield fake


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(compiled("console", tmp_path_factory.mktemp("libqmf2")))


@attrs.frozen
class Asking:
    """A console that knows an agent."""

    console: Driven
    agent: str
    protocol: str

    def query(self, where: object = ()) -> list[list[str]]:
        return self.console.ask("query", self.agent, PACKAGE, "thing", *words(where))

    def things(self, where: object = ()) -> dict[str, dict[str, object]]:
        """Things by name."""
        return {str(values["name"]): values for values in map(values_of, self.query(where))}

    def call(self, name: str, method: str, inputs: Mapping[str, object]) -> tuple[str, object]:
        """What becomes of a call, and the values."""
        object_name = f"{PACKAGE}:thing:{name}"
        (line,) = self.console.ask("call", self.agent, object_name, "3", method, *words(inputs))
        return line[0], read(iter(line[1:]))


def values_of(line: list[str]) -> dict[str, object]:
    """The values of an object's line."""
    assert line[0] == "object", line
    values = read(iter(line[7:]))
    assert isinstance(values, dict)
    return values


def wait_for_agent(console: Driven, name: str) -> dict[str, object]:
    """Attributes of an agent, once the console knows it."""
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        for line in console.ask("agents"):
            if line[1] == escaped(name):
                attributes = read(iter(line[3:]))
                assert isinstance(attributes, dict)
                return {"epoch": int(line[2]), **attributes}
        time.sleep(0.05)
    raise AssertionError(f"the console does not see {name}")


@pytest.fixture(scope="module", params=PROTOCOLS)
def asking(request: pytest.FixtureRequest, program: str, fake: InThread[FakeAgent]) -> Iterator[Asking]:
    with driven(program, address(), request.param) as console:
        wait_for_agent(console, fake.it.name)
        yield Asking(console, fake.it.name, request.param)


def test_the_agent_is_found(asking: Asking) -> None:
    attributes = wait_for_agent(asking.console, asking.agent)
    assert attributes["epoch"] == 3
    assert attributes["_vendor"] == "example.org"
    assert attributes["qmf.agent_capability"] == Typed("uint32", 1)


def test_objects_come_whole_with_all_types(asking: Asking) -> None:
    lines = asking.query()
    assert len(lines) == 12
    line = next(line for line in lines if line[1] == escaped(f"{PACKAGE}:thing:thing-1"))
    key = SCHEMA.classes[0].key
    assert [unescaped(word) for word in line[2:7]] == [asking.agent, "3", PACKAGE, "thing", str(key.hash)]
    assert values_of(line) == {
        "name": "thing-1",
        "small": Typed("uint8", 100),
        "medium": Typed("uint16", 2**16 - 1),
        "large": Typed("uint32", 2**32 - 1),
        "huge": Typed("uint64", 2**64 - 1),
        "cold": Typed("int8", -(2**7)),
        "deep": Typed("int16", -(2**15)),
        "below": Typed("int32", -(2**31)),
        "bottom": Typed("int64", -(2**63)),
        "on": True,
        "text": "Größe % 長",
        "moment": Typed("int64", 1_700_000_000_000_000_000),
        "while": Typed("uint64", 5),
        "half": Typed("float", 0.5),
        "whole": Typed("double", 0.1),
        "token": Typed("uuid", str(TOKEN)),
        "options": {"a": Typed("int64", 1), "deep": {"b": [True, "x"]}},
        "tags": ["x", Typed("int64", 2), {"c": None}],
        "turns": Typed("uint64", 7),
        "users": Typed("uint16", 4),
        "usersHigh": Typed("uint16", 9),
        "usersLow": Typed("uint16", 4),
        "delayCount": Typed("uint64", 2),
        "delayMin": Typed("uint64", 10),
        "delayMax": Typed("uint64", 30),
        "delayAvg": Typed("uint64", 20),
    }


def test_references_and_optional_properties(asking: Asking) -> None:
    (two,) = asking.things(["eq", "label", ["quote", "two"]]).values()
    assert two["nextRef"] == {
        "_object_name": f"{PACKAGE}:thing:thing-0",
        "_agent_name": asking.agent,
        "_agent_epoch": Typed("uint32", 3),
    }
    assert "label" not in asking.things()["thing-3"]


def test_one_object_by_its_id(asking: Asking) -> None:
    (line,) = asking.console.ask("get", asking.agent, f"{PACKAGE}:thing:thing-7", "3")
    assert values_of(line)["name"] == "thing-7"
    assert asking.console.ask("get", asking.agent, f"{PACKAGE}:thing:nothing", "3") == []


@pytest.mark.parametrize(
    ("where", "numbers"),
    [
        (["eq", "name", ["quote", "thing-3"]], {3}),
        (
            ["and", ["ge", "large", ["quote", Typed("int32", 4)]], ["lt", "large", ["quote", Typed("int32", 7)]]],
            {4, 5, 6},
        ),
        (["or", ["eq", "name", ["quote", "thing-3"]], ["eq", "name", ["quote", "thing-5"]]], {3, 5}),
        (["and", ["not", ["eq", "on", ["quote", True]]], ["gt", "whole", ["quote", Typed("double", 4.0)]]], {9, 11}),
        (["exists", "label"], {2}),
        (["re_match", "name", ["quote", "thing-1.$"]], {10, 11}),
        (["false"], set()),
    ],
)
def test_predicates(asking: Asking, where: object, numbers: set[int]) -> None:
    assert set(asking.things(where)) == {f"thing-{number}" for number in numbers}


_literals = st.one_of(
    st.integers(-3, 15).map(lambda number: Typed("int32", number)),
    st.sampled_from([0.5, 2.5, -1.5]).map(lambda number: Typed("double", number)),
    st.booleans(),
    st.sampled_from(["thing-1", "thing-11", "two", ""]),
)
_operands = st.sampled_from(["name", "large", "whole", "on", "label", "bottom", "missing"])
_comparisons = st.tuples(
    st.sampled_from(["eq", "ne", "lt", "le", "gt", "ge"]), _operands, _literals.map(lambda value: ["quote", value])
).map(list)
_predicates: st.SearchStrategy[Any] = st.recursive(
    _comparisons | st.tuples(st.just("exists"), _operands).map(list),
    lambda inner: st.tuples(st.sampled_from(["and", "or", "not"]), st.lists(inner, min_size=1, max_size=3)).map(
        lambda parts: [parts[0], *parts[1]]
    ),
    max_leaves=4,
)


def _plain(item: object) -> Any:
    if isinstance(item, Typed):
        return item.value
    if isinstance(item, dict):
        return {key: _plain(value) for key, value in item.items()}
    return [_plain(member) for member in item] if isinstance(item, list) else item


@examples(40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=_predicates)
def test_any_predicate_selects_what_it_should(asking: Asking, where: Any) -> None:
    everything = asking.things()
    expected = {name for name, values in everything.items() if matches(_plain(where), _plain(values))}
    assert set(asking.things(where)) == expected


def test_a_wrong_predicate_is_refused(asking: Asking) -> None:
    (line,) = asking.query(["sounds_like", "name", ["quote", "x"]])
    assert line[0] == "exception"
    values = read(iter(line[1:]))
    assert isinstance(values, dict)
    assert "sounds_like" in str(values["error_text"])


def test_schemas(asking: Asking) -> None:
    listed = [[unescaped(word) for word in line[1:]] for line in asking.console.ask("schemas", asking.agent)]
    assert sorted(listed) == [
        [item.key.kind.value.strip("_"), PACKAGE, item.key.name, str(item.hash)]
        for item in sorted(SCHEMA, key=lambda item: item.key.kind.value)
    ]
    check_thing(asking, optional=False)
    head, *arguments = asking.console.ask("schema", asking.agent, PACKAGE, "thingBroke")
    assert [unescaped(head[1]), head[2]] == ["A thing broke", "3"]
    assert [(line[1], int(line[2]), unescaped(line[6])) for line in arguments] == [
        ("name", STRING, ""),
        ("level", INT, "percent"),
        ("options", MAP, ""),
    ]


def check_thing(asking: Asking, *, optional: bool) -> None:
    """The class as the console has it; only QMFv1 tells it what is optional."""
    (head, *lines) = asking.console.ask("schema", asking.agent, PACKAGE, "thing")
    assert unescaped(head[1]) == "A thing with a value of each type" or optional
    found = {unescaped(line[1]): line for line in lines if line[0] == "property"}
    kinds = {name: int(line[2]) for name, line in found.items()}
    assert (kinds["name"], kinds["small"], kinds["on"], kinds["half"]) == (STRING, INT, BOOL, FLOAT)
    assert (kinds["token"], kinds["options"], kinds["tags"], kinds["moment"]) == (UUID, MAP, LIST, INT)
    name, small = found["name"], found["small"]
    assert [int(name[3]), int(name[4]), int(small[3])] == [READ_CREATE, 1, READ_WRITE]
    assert [unescaped(small[6]), unescaped(small[7])] == ["percent", "From 1 to 100"]
    assert found["label"][5] == str(int(optional))
    assert {"turns", "users", "usersHigh", "usersLow", "delayMin", "delayMax"} <= found.keys()
    assert [line[1] for line in lines if line[0] == "method"] == ["echo", "add", "refuse", "rest"]
    arguments = {(unescaped(line[1]), int(line[2]), int(line[9])) for line in lines if line[0] == "argument"}
    assert {("one", INT, 1), ("sum", INT, 2), ("whole", FLOAT, 3), ("token", UUID, 3), ("other", MAP, 3)} <= arguments


def test_all_types_both_ways(asking: Asking) -> None:
    other = {
        "_object_name": f"{PACKAGE}:thing:thing-0",
        "_agent_name": asking.agent,
        "_agent_epoch": Typed("uint32", 3),
    }
    inputs = {
        "small": Typed("uint8", 255),
        "medium": Typed("uint16", 65_535),
        "large": Typed("uint32", 2**32 - 1),
        "huge": Typed("uint64", 2**64 - 1),
        "cold": Typed("int8", -128),
        "deep": Typed("int16", -32_768),
        "below": Typed("int32", -(2**31)),
        "bottom": Typed("int64", -(2**63)),
        "on": True,
        "short": "kurz % und gut",
        "text": "長" * 300,
        "moment": Typed("int64", 5),
        "while": Typed("uint64", 6),
        "half": Typed("float", 0.5),
        "whole": Typed("double", 0.1),
        "token": Typed("uuid", str(TOKEN)),
        "options": {"k": "v", "inner": {"list": [True, "x", None]}},
        "tags": ["a", [False], {"m": "n"}],
        "other": other,
    }
    # qpidd 1.40 mangles values of type int8 when it turns a message of AMQP 0-10 into one of AMQP 1.0.
    cold = Typed("int16", -128) if asking.protocol == "amqp0-10" else inputs["cold"]
    assert asking.call("thing-1", "echo", {**inputs, "cold": cold}) == ("result", inputs)


def test_numbers_of_any_width_are_taken(asking: Asking) -> None:
    assert asking.call("thing-1", "add", {"one": Typed("uint8", 40)}) == ("result", {"sum": Typed("int64", 42)})
    assert asking.call("thing-1", "add", {"one": Typed("int64", -1), "two": Typed("uint64", 1)}) == (
        "result",
        {"sum": Typed("int64", 0)},
    )
    assert asking.call("thing-1", "rest", {}) == ("result", {})


@pytest.mark.parametrize(
    ("name", "method", "inputs", "text", "code"),
    [
        ("thing-1", "refuse", {}, "nichts für ungut", 65_537),
        ("thing-1", "ad", {}, "did you mean add", 2),
        ("thing-1", "add", {}, "'one'", 4),
        ("thing-1", "add", {"one": Typed("int64", 2**40)}, "'one'", 4),
        ("thing-1", "add", {"one": Typed("uint8", 1), "three": Typed("uint8", 1)}, "'three'", 4),
        ("nothing", "add", {"one": Typed("uint8", 1)}, "no object found", 1),
    ],
)
def test_refusals_are_exceptions(
    asking: Asking, name: str, method: str, inputs: dict[str, object], text: str, code: int
) -> None:
    kind, values = asking.call(name, method, inputs)
    assert kind == "exception"
    assert isinstance(values, dict)
    assert text in values["error_text"]
    assert values["error_code"] == Typed("uint32", code)


def test_events(asking: Asking, fake: InThread[FakeAgent]) -> None:
    asking.console.ask("news")
    fake.it.raise_event("thingBroke", name="thing-1", level=91, options={"a": [1]})
    fake.it.raise_event("thingBroke", name="thing-2", level=0, options={}, _severity=1)
    events: list[list[str]] = []
    deadline = time.monotonic() + 10
    while len(events) < 2 and time.monotonic() < deadline:
        events += [line for line in asking.console.ask("news") if line[:2] == ["event", escaped(asking.agent)]]
        time.sleep(0.02)
    assert [[unescaped(word) for word in line[2:5]] for line in events] == [
        [PACKAGE, "thingBroke", "3"],
        [PACKAGE, "thingBroke", "1"],
    ]
    assert all(abs(int(line[5]) - time.time_ns()) < 60e9 for line in events)
    assert [read(iter(line[6:])) for line in events] == [
        {"name": "thing-1", "level": Typed("uint8", 91), "options": {"a": [Typed("int64", 1)]}},
        {"name": "thing-2", "level": Typed("uint8", 0), "options": {}},
    ]


def test_events_that_share_a_message(asking: Asking, fake: InThread[FakeAgent]) -> None:
    async def together() -> None:  # what is raised in one turn of the loop goes together
        for number in range(120):
            fake.it.raise_event("thingBroke", name=f"part-{number}", level=number, options={})

    asking.console.ask("news")
    fake.run(together())
    events: list[list[str]] = []
    deadline = time.monotonic() + 10
    while len(events) < 120 and time.monotonic() < deadline:
        events += [line for line in asking.console.ask("news") if line[:2] == ["event", escaped(asking.agent)]]
        time.sleep(0.02)
    assert [read(iter(line[6:])) for line in events] == [
        {"name": f"part-{number}", "level": Typed("uint8", number), "options": {}} for number in range(120)
    ]


def test_changes_are_seen_by_the_next_query(asking: Asking, fake: InThread[FakeAgent]) -> None:
    obj = fake.it.add("Thing", name=f"late-{uuid.uuid4()}")
    assert obj.name in asking.things()
    obj.turns.inc(3)
    assert asking.things()[obj.name]["turns"] == Typed("uint64", 3)
    fake.it.remove(obj)
    assert obj.name not in asking.things()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_console_that_asks_for_schemas_by_qmfv1(program: str, protocol: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """libqmf2 does so with agents that do not say that they know better."""
    info = AgentIdentity.info

    def modest(self: AgentIdentity, timestamp: int, schema_updated: int) -> AgentInfo:
        return attrs.evolve(info(self, timestamp, schema_updated), capability=0)

    monkeypatch.setattr(AgentIdentity, "info", modest)
    with (
        InThread(lambda: serve(str(uuid.uuid4()), 1)) as fake,
        driven(program, address(), protocol) as console,
    ):
        assert "qmf.agent_capability" not in wait_for_agent(console, fake.it.name)
        asking = Asking(console, fake.it.name, protocol)
        assert asking.things().keys() == {"thing-0"}
        check_thing(asking, optional=True)
        assert fake.it.agent.statistics.schema_requests == 1


def test_the_schema_has_every_type() -> None:
    (thing,) = SCHEMA.classes
    assert isinstance(thing, ClassSchema)
    assert isinstance(SCHEMA.events[0], EventSchema)
    assert {item.type.name for item in thing.methods[0].arguments} | {"lstr"} >= {
        item.type.name for item in thing.properties
    }
    assert isinstance(ObjectId("x"), ObjectId)
