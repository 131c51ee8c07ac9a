"""The small parts of the core: views, filters, calls, keys, store, schema cache, feeds, answers."""

from __future__ import annotations

import asyncio
from functools import partial

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_agent import ALARM, PACKAGE, WIDGET, part, widget

from qmf.bus.topics import TopicTable
from qmf.console.aio import (
    Answers,
    CallResult,
    ClassView,
    Dropped,
    HeartbeatSeen,
    Notification,
    Overflow,
    RemoteEvent,
    RemoteObject,
    class_keys,
    heartbeat_keys,
)
from qmf.console.aio.agents.registry import Agent, info_from_name
from qmf.console.aio.indications import ObjectStore
from qmf.console.aio.objects.class_view import merge, schema_name, typed, with_agent
from qmf.console.aio.objects.methods import MethodSignature, bind_inputs, typed_outputs
from qmf.console.aio.queries.agent_queries import combined_failure
from qmf.console.aio.queries.object_query import compile_filter
from qmf.console.aio.receiver import key_matches
from qmf.console.aio.schemas.cache import RETRY_AFTER, AnySchema, SchemaCache
from qmf.console.aio.streams import NotificationStream
from qmf.errors import CallerError, ConstraintError, NotFoundError, RemoteError, RequestTimeout
from qmf.protocol import ObjectData, ObjectId
from qmf.schema import TYPES, Argument, ClassKey, ClassSchema, Method, Severity, Statistic

AGENT = "example.org:widgets:1"
VIEW = ClassView(WIDGET)


def remote(data: ObjectData, view: ClassView | None = VIEW) -> RemoteObject:
    assert data.object_id is not None
    return RemoteObject(data, with_agent(data.object_id, AGENT), AGENT, view, None)


# -- views


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("name", "name"),
        ("turns", "turns"),
        ("loadHigh", "loadHigh"),
        ("delayCount", "delayCount"),
        ("delaySamples", "delayCount"),
        ("delayAverage", "delayAvg"),
        ("delayAvg", "delayAvg"),
    ],
)
def test_a_view_finds_values_by_all_their_names(name: str, key: str) -> None:
    field = VIEW.field(name)
    assert field is not None
    assert field.key == key


def test_a_view_knows_groups_and_types() -> None:
    assert list(VIEW.statistics) == [
        "turns",
        *("load", "loadHigh", "loadLow"),
        *("delayCount", "delayMin", "delayMax", "delayAvg"),
    ]
    assert VIEW.statistics["delayMin"].type.name == "deltaTime"
    assert VIEW.statistics["delayCount"].type.name == "uint64"
    assert VIEW.optional == {"label", "parent"}
    assert VIEW.field("delay") is None


def test_a_property_keeps_its_name_before_an_expanded_statistic() -> None:
    schema = attrs.evolve(WIDGET, statistics=(Statistic(name="na", type=TYPES["hilo8"]),), properties=WIDGET.properties)
    clash = ClassView(attrs.evolve(schema, properties=(attrs.evolve(WIDGET.properties[0], name="naHigh"),)))
    field = clash.field("naHigh")
    assert field is not None
    assert field.type.name == "sstr"


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("sstr", b"x", "x"),
        ("uint8", 5, 5),
        ("double", 5, 5.0),
        ("uint8", "five", "five"),
        ("sstr", None, None),
        ("objId", {"_object_name": "p"}, ObjectId("p", AGENT)),
        ("objId", {"_object_name": "p", "_agent_name": "broker"}, ObjectId("p", AGENT)),
        ("objId", {"_object_name": "p", "_agent_name": "other"}, ObjectId("p", "other")),
        ("objId", {"_object_name": ""}, None),
    ],
)
def test_values_are_typed_and_what_does_not_fit_stays(kind: str, value: object, expected: object) -> None:
    result = typed(TYPES[kind], value, AGENT)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(("severity", "level"), [(0, Severity.EMERG), (7, Severity.DEBUG), (8, None), (-1, None)])
def test_an_event_has_a_level_where_its_severity_is_one(severity: int, level: Severity | None) -> None:
    agent = Agent(info_from_name(AGENT))
    event = RemoteEvent(agent=agent, class_key=None, schema=None, timestamp=0, severity=severity, arguments={})
    assert event.level is level


@pytest.mark.parametrize(("written", "name"), [("class_", "class"), ("from_", "from"), ("name_", "name_"), ("x", "x")])
def test_keywords_are_written_with_an_underscore(written: str, name: str) -> None:
    assert schema_name(written) == name


# -- remote objects


def test_an_object_reads_like_its_schema_says() -> None:
    obj = remote(widget("w"))
    assert list(obj.properties) == ["name", "level", "enabled"]
    assert len(obj.statistics) == 8
    assert obj.label is None
    assert (obj.delayAverage, obj["delayAvg"]) == (20, 20)
    assert list(obj.methods) == ["echo", "link", "stop"]
    assert {"name", "delayAvg", "echo", "update"} <= set(dir(obj))
    assert repr(obj) == "<org.example.widgets:widget w at example.org:widgets:1>"
    assert obj == remote(part("w", {}))
    assert len({obj, remote(part("w", {}))}) == 1


@pytest.mark.parametrize("name", ["nmae", "eccho"])
def test_unknown_attributes_name_similar_ones(name: str) -> None:
    with pytest.raises(AttributeError, match=r"did you mean (name|echo)"):
        getattr(remote(widget("w")), name)
    with pytest.raises(NotFoundError):
        remote(widget("w"))[name]


def test_values_beyond_the_schema_can_be_read() -> None:
    obj = remote(widget("w", extra=1))
    assert obj.extra == 1
    untyped = remote(part("w", {"a": b"b"}), None)
    assert untyped.a == b"b"
    assert (dict(untyped.properties), dict(untyped.statistics)) == ({"a": b"b"}, {})
    with pytest.raises(NotFoundError):
        untyped["b"]


async def test_an_object_without_client_can_not_be_asked() -> None:
    obj = remote(widget("w"))
    for work in (obj.update(), obj.call("stop"), obj.set(level=2)):
        with pytest.raises(CallerError, match="not managed"):
            await work


def test_a_property_update_without_an_optional_property_unsets_it() -> None:
    old = widget("w", label="x", update=1)
    assert merge(old, part("w", {"name": "w", "level": 2}), VIEW).values.get("label") is None
    assert merge(old, part("w", {"turns": 2}), VIEW).values["label"] == "x"
    assert merge(old, part("w", {"turns": 2}), VIEW).update_ts == 1
    assert merge(old, part("w", {"level": 2}), None).values["label"] == "x"


def test_the_result_of_a_method_reads_by_item_and_attribute() -> None:
    result = CallResult({"body": "x", "keys": 1})
    assert (result.body, result["keys"], len(result), list(result)) == ("x", 1, 2, ["body", "keys"])
    with pytest.raises(AttributeError, match="did you mean body"):
        _ = result.bodi
    assert repr(result) == "CallResult({'body': 'x', 'keys': 1})"


# -- filters


def test_an_equality_filter_sends_only_what_texts_can_not_get_wrong() -> None:
    sent, _ = compile_filter({"name": "w", "enabled": True, "level": 5, "turns": 1.5, "delaySamples": 2}, [VIEW])
    assert sent == [
        "and",
        ["eq", "name", ["quote", "w"]],
        ["eq", "enabled", ["quote", True]],
        ["eq", "level", ["quote", 5]],
        ["eq", "delayCount", ["quote", 2]],
    ]
    assert compile_filter({"name": "w", "level": 5}, [])[0] == ["and", ["eq", "name", ["quote", "w"]]]
    assert compile_filter({"turns": 1.5}, [VIEW])[0] == ()


@pytest.mark.parametrize(
    ("where", "fits"),
    [
        (None, True),
        ({}, True),
        ([], True),
        ({"name": "w"}, True),
        ({"name": "v"}, False),
        ({"enabled": True}, True),
        ({"enabled": 1}, False),
        ({"level": 5.0}, True),
        ({"label": None}, True),
        ({"parent": ObjectId("p")}, True),
        ({"parent": ObjectId("p", AGENT)}, True),
        ({"parent": ObjectId("p", "other")}, False),
        ({"parent": remote(part("p", {}))}, True),
        (["eq", "level", ["quote", "5"]], True),
        (["not", ["exists", "label"]], True),
        (("gt", "level", ("quote", 5)), False),
    ],
)
def test_filters_are_applied_here(where: object, fits: bool) -> None:
    _, test = compile_filter(where, [VIEW])  # type: ignore[arg-type]
    assert test(remote(widget("w", parent=ObjectId("p")))) is fits


@pytest.mark.parametrize("where", ["name", ["eq", "name"], ["frobnicate"], 5, [["a"]]])
def test_what_is_no_filter_is_refused(where: object) -> None:
    with pytest.raises(ConstraintError, match="where"):
        compile_filter(where, [])  # type: ignore[arg-type]


def test_re_match_is_not_sent_but_applied() -> None:
    sent, test = compile_filter(["and", ["re_match", "name", ["quote", "^w"]]], [])
    assert sent == ()
    assert test(remote(widget("w")))
    assert not test(remote(widget("v")))
    quoted = ["eq", "name", ["quote", "re_match"]]
    assert compile_filter(quoted, [])[0] == quoted


# -- calls

ECHO = WIDGET.methods[0]
LINK = WIDGET.methods[1]


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "words"),
    [
        ((1, "x", 3), {}, ConstraintError, r"widget.echo \(takes sequence, body\): must be given at most 2 arguments"),
        ((1,), {}, ConstraintError, r"argument 'body' of widget.echo \(lstr\): must be given, not None"),
        ((1, "x"), {"body": "y"}, ConstraintError, "given by position"),
        ((1, 2), {}, ConstraintError, r"argument 'body' of widget.echo \(lstr\): must be a string, not 2"),
        ((-1, "x"), {}, ConstraintError, "must be 0 to 4294967295"),
        ((True, "x"), {}, ConstraintError, "must be a whole number"),
        ((1,), {"bdoy": "x"}, NotFoundError, "did you mean body"),
    ],
)
def test_wrong_arguments_are_named(
    args: tuple[object, ...], kwargs: dict[str, object], error: type[Exception], words: str
) -> None:
    for bind in (partial(bind_inputs, "widget", ECHO), partial(MethodSignature(WIDGET, ECHO).bind, "widget")):
        with pytest.raises(error, match=words):
            bind(args, kwargs)


LIMITED = Method(
    name="set",
    arguments=(
        Argument(name="small", type=TYPES["int8"], minimum=-5, maximum=1000),
        Argument(name="any", type=TYPES["uint64"]),
        Argument(name="short", type=TYPES["sstr"], max_len=3),
        Argument(name="long", type=TYPES["sstr"], default="d"),
        Argument(name="flag", type=TYPES["bool"]),
        Argument(name="rate", type=TYPES["float"], maximum=2),
        Argument(name="time", type=TYPES["absTime"]),
    ),
)


@pytest.mark.parametrize("position", range(len(LIMITED.inputs)))
@pytest.mark.parametrize(
    "value",
    [0, 5, -5, -6, 127, 128, 2**64 - 1, 2**64, 1.0, 2.5, True, None, "", "abc", "abcd", "é", "éé", "x" * 256, b"a", []],
)
def test_a_signature_binds_as_bind_does(position: int, value: object) -> None:
    method = Method(name="set", arguments=(LIMITED.arguments[position],))
    results: list[object] = []
    for bind in (
        partial(bind_inputs, "widget", method),
        partial(MethodSignature(WIDGET, method).bind, "widget"),
    ):
        try:
            found = bind((value,), {})
            results.append((found, [type(item) for item in found.values()]))
        except ConstraintError as error:
            results.append(str(error))
    assert results[0] == results[1]


@pytest.mark.parametrize("target", [ObjectId("p"), remote(part("p", {}))])
def test_references_are_given_as_id_or_object(target: object) -> None:
    sent = bind_inputs("widget", LINK, (target,), {})
    assert isinstance(sent["target"], ObjectId)
    assert sent["force"] is False
    with pytest.raises(ConstraintError, match="must be a remote object or its id"):
        bind_inputs("widget", LINK, ("p",), {})


def test_a_method_without_inputs_takes_none() -> None:
    with pytest.raises(ConstraintError, match="takes no arguments"):
        bind_inputs("widget", WIDGET.methods[2], (1,), {})


def test_outputs_are_typed_and_unknown_ones_kept() -> None:
    found = typed_outputs(ECHO, {"sequence": 1.0, "body": b"x", "more": b"y"}, AGENT)
    assert found == {"sequence": 1, "body": "x", "more": b"y"}
    assert typed_outputs(None, {"a": 1}, AGENT) == {"a": 1}


# -- keys


@pytest.mark.parametrize(
    ("kind", "package", "name", "keys"),
    [
        ("data", None, None, ["agent.ind.data.#"]),
        ("event", "a.b", None, ["agent.ind.event.a_b.#", "agent.ind.event.a.b.#"]),
        ("event", "a", "E", ["agent.ind.event.a.E.#"]),
        ("data", "a.b", "Queue", ["agent.ind.data.a_b.queue.#", "agent.ind.data.a.b.queue.#"]),
    ],
)
def test_class_keys(kind: str, package: str | None, name: str | None, keys: list[str]) -> None:
    assert class_keys(kind, package, name) == keys


def test_heartbeat_keys() -> None:
    assert heartbeat_keys(None) == ["agent.ind.heartbeat.#"]
    assert heartbeat_keys("a.b", "C") == ["agent.ind.heartbeat.a_b.C.#", "agent.ind.heartbeat.a.b.C.#"]


WORDS = st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=5).map(".".join)
PATTERNS = st.lists(st.sampled_from(["a", "b", "*", "#", ""]), min_size=1, max_size=5).map(".".join)


@given(PATTERNS, WORDS)
def test_keys_match_as_on_the_bus(pattern: str, subject: str) -> None:
    table: TopicTable[int] = TopicTable()
    table.add(pattern, 1)
    assert key_matches(pattern, subject) is (list(table.match(subject)) == [1])


# -- store


def test_an_older_answer_does_not_undo_an_indication() -> None:
    store = ObjectStore()
    store.update(remote(widget("w", turns=2, update=20)))
    store.update(remote(widget("w", turns=1, update=10)))
    kept = store.get(ObjectId("w", AGENT))
    assert kept is not None
    assert kept["turns"] == 2


def test_a_new_object_under_an_old_id_inherits_nothing() -> None:
    store = ObjectStore()
    store.update(remote(widget("w", label="x")))
    fresh = attrs.evolve(part("w", {"name": "w"}), create_ts=2)
    assert store.update(remote(fresh)).label is None


# -- schema cache


def ignore(_: Notification) -> None:
    return


async def test_versions_of_a_class_live_side_by_side() -> None:
    other = attrs.evolve(WIDGET, hash=ALARM.hash)

    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        return WIDGET if key.hash == WIDGET.hash else other

    cache = SchemaCache(fetch, ignore)
    assert await cache.get(WIDGET.key) is WIDGET
    assert await cache.get(other.key) is other
    assert cache.classes(PACKAGE) == sorted([WIDGET.key, other.key])
    assert cache.resolve(None, "WIDGET") == [WIDGET.key, other.key]


async def test_one_asker_who_gives_up_does_not_take_the_answer_from_others() -> None:
    ready = asyncio.Event()
    asked: list[tuple[str, ...]] = []

    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        asked.append(agents)
        await ready.wait()
        return WIDGET

    cache = SchemaCache(fetch, ignore)
    cache.saw(WIDGET.key, Agent(info_from_name(AGENT)))
    one, two = (asyncio.create_task(cache.get(WIDGET.key)) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.sleep(0)
    ready.set()
    assert await two is WIDGET
    assert asked == [(AGENT,)]


async def test_a_failure_is_remembered_for_a_while() -> None:
    now = 0.0

    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        raise NotFoundError("schema", str(key))

    cache = SchemaCache(fetch, ignore, lambda: now)
    assert cache.worth_asking(WIDGET.key)
    with pytest.raises(NotFoundError):
        await cache.get(WIDGET.key)
    assert not cache.worth_asking(WIDGET.key)
    now = RETRY_AFTER + 1
    assert cache.worth_asking(WIDGET.key)
    assert not cache.worth_asking(attrs.evolve(WIDGET.key, hash=None))


async def test_an_event_key_that_leaves_its_kind_out_is_found() -> None:
    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        return ALARM

    cache = SchemaCache(fetch, ignore)
    cache.saw(ALARM.key, Agent(info_from_name(AGENT)))
    assert await cache.get(ClassKey(PACKAGE, "widgetAlarm", hash=ALARM.hash)) is ALARM
    with pytest.raises(NotFoundError, match="class"):
        await cache.get(ClassKey(PACKAGE, "other", hash=ALARM.hash))


# -- feeds


def beat(number: int) -> Notification:
    return HeartbeatSeen(Agent(info_from_name(AGENT)), number)


async def drain(feed: NotificationStream) -> list[int]:
    feed.close()
    return [-item.count if isinstance(item, Dropped) else item.timestamp async for item in feed]  # type: ignore[union-attr]


@pytest.mark.parametrize(("overflow", "told"), [(Overflow.DROP_OLDEST, [-3, 3, 4]), (Overflow.DROP_NEWEST, [0, 1, -3])])
async def test_a_full_feed_drops_by_its_policy(overflow: Overflow, told: list[int]) -> None:
    feed = NotificationStream((HeartbeatSeen,), 2, overflow, lambda _: None)
    for number in range(5):
        feed.put(beat(number))
    assert feed.dropped == 3
    assert await drain(feed) == told


async def test_a_gap_is_told_where_it_is() -> None:
    feed = NotificationStream((HeartbeatSeen,), 1, Overflow.DROP_NEWEST, lambda _: None)
    for number in range(2):
        feed.put(beat(number))
    assert await anext(feed) == beat(0)
    feed.put(beat(2))
    assert await anext(feed) == Dropped(2)
    feed.put(beat(3))
    assert await drain(feed) == [3]


async def test_a_feed_wakes_its_reader_and_ends() -> None:
    with NotificationStream((HeartbeatSeen,), 2, Overflow.DROP_OLDEST, lambda _: None) as feed:
        reading = asyncio.ensure_future(anext(feed))
        await asyncio.sleep(0)
        feed.put(beat(1))
        assert await reading == beat(1)
        reading = asyncio.ensure_future(anext(feed))
        await asyncio.sleep(0)
    with pytest.raises(StopAsyncIteration):
        await reading
    feed.put(beat(2))
    assert await drain(feed) == []


# -- answers


def test_answers_read_like_a_list() -> None:
    answers = Answers((1, 2), {"b:b:b": RequestTimeout("query", "b:b:b", 1)})
    assert (list(answers), answers[0], answers[1:], len(answers), 2 in answers) == ([1, 2], 1, (2,), 2, True)
    assert repr(answers) == "<[1, 2], no answer from b:b:b>"


def test_the_error_that_tells_most_is_raised() -> None:
    silent, refused = RequestTimeout("q", "a", 1), RemoteError("no", agent="b")
    assert combined_failure({"a": silent, "b": refused}) is refused
    assert combined_failure({"a": silent}) is silent


def test_class_schema_views_exist_for_classes_only() -> None:
    assert isinstance(VIEW.schema, ClassSchema)
