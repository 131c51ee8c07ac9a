"""The pages of live screens without a terminal: from classes to objects, references and events, and back."""

from __future__ import annotations

import time

import attrs
import pytest
from qmf_shell.screens.drawing import cut_end
from qmf_shell.screens.pages.events import KEPT
from qmf_shell.session.backend import HeartbeatRecord
from qmf_shell.session.context import Context
from shell.fakes import (
    ALPHA,
    BETA,
    NOON,
    SCHEMAS,
    SECOND,
    FakeBackend,
    agent,
    filesystem,
    full_event,
    make_output,
    process,
)
from shell.looked import QUEUE, Looked, queue

from qmf.views.events import LostEvents
from qmf.views.objects import ObjectIdentity, ObjectKey


@pytest.fixture
def of_a_broker(backend: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """A backend with a class of brokers."""
    monkeypatch.setitem(SCHEMAS, QUEUE.key, QUEUE)
    backend.keys = [*backend.keys, QUEUE.key]
    return backend


def test_from_classes_to_objects_to_references_and_back(context: Context, backend: FakeBackend) -> None:
    parent = backend.records[1].identity.key
    backend.records[0] = filesystem("/home", parent=parent)
    looked = Looked(context, "watch")
    assert any(line.split()[:3] == ["filesystem", "2", "0"] for line in looked.lines())
    looked.navigator.filter("filesystem")
    looked.navigator.open()
    looked.update()
    looked.navigator.filter("/home")
    looked.navigator.open()
    looked.update()
    assert looked.lines()[0].startswith(" classes > org.example:filesystem > filesystem /home")
    looked.navigator.tab()
    looked.update()
    assert any(line.split() == ["to", "101", "filesystem", "/", "parent"] for line in looked.lines())
    looked.navigator.open()
    looked.update()
    assert "filesystem /  id 101" in looked.lines()[0]
    looked.navigator.tab(number=1)
    looked.update()
    assert any(line.split() == ["from", "102", "filesystem", "/home", "parent"] for line in looked.lines())
    for _ in range(2):
        looked.navigator.back()
    looked.navigator.back()  # the filter
    looked.navigator.back()
    assert looked.lines()[0].startswith(" classes ")


def test_a_reference_to_an_object_that_is_gone_shows_its_name(context: Context, backend: FakeBackend) -> None:
    parent = backend.records[1].identity.key
    backend.records = [filesystem("/home", parent=parent), filesystem("/other")]
    looked = Looked(context, "watch filesystem")
    looked.navigator.filter("/home")
    looked.navigator.open()
    looked.update()
    looked.navigator.tab()
    looked.update()
    assert any(line.split() == ["to", "-", "not", "found", parent.object_name, "parent"] for line in looked.lines())


def test_a_reference_among_the_values_is_opened(context: Context, backend: FakeBackend) -> None:
    backend.records[0] = filesystem("/home", parent=backend.records[1].identity.key)
    looked = Looked(context, "watch /home")
    looked.navigator.filter("parent")
    looked.navigator.open()
    assert "filesystem /" in looked.lines()[0]
    looked.update()
    assert any(line.startswith("mountPoint  /") for line in looked.lines())
    looked.navigator.back()
    looked.navigator.filter("options")
    looked.navigator.open()
    assert '{"ro": true}' in looked.text
    looked.navigator.open()
    assert "/options: 1 shown" in looked.lines(160)[0]


def test_several_objects_side_by_side(context: Context) -> None:
    looked = Looked(context, "watch /home /")
    assert looked.lines()[0].startswith(" filesystem /home and 1 more")
    assert any(line.split()[:4] == ["mountPoint", "/home", "-", "/"] for line in looked.lines(160))


def test_a_class_of_one_object_stands_for_it(context: Context, backend: FakeBackend) -> None:
    backend.records = backend.records[:1]
    assert Looked(context, "watch filesystem").lines()[0].startswith(" filesystem /home")


def test_a_name_of_several_classes_lists_them(context: Context) -> None:
    rows = Looked(context, "watch process").rows()
    assert [line.split()[0:4:3] for line in rows] == [["process", "com.other"], ["process", "org.example"]]


def test_events_come_the_latest_first(context: Context) -> None:
    context.events.add(full_event("/home"))
    looked = Looked(context, "events -f -s warn")
    context.events.add(full_event("/", at=NOON + 5 * SECOND, severity=1))
    context.events.add(full_event("/hidden", severity=7))
    looked.update()
    assert [line.split()[:4] for line in looked.rows()] == [
        ["12:00:05", "alert", "filesystemFull", "mountPoint=/"],
        ["12:00:00", "warn", "filesystemFull", "mountPoint=/home"],
    ]
    assert looked.styles("alert") == "class:cursor class:critical"
    looked.navigator.page.model.sort_by("severity", descending=True)
    assert "/home" in looked.rows()[0]
    looked.navigator.filter("alert")
    looked.navigator.open()
    assert any(line.startswith("mountPoint  /") for line in looked.lines())
    assert "org.example:filesystemFull" in looked.text


def test_events_that_did_not_arrive_are_among_those_that_did(context: Context) -> None:
    for mount in ("/home", "/"):
        context.events.add(full_event(mount))
        context.events.add(LostEvents(ALPHA, 12, NOON))
    context.events.add(LostEvents(BETA, 5, NOON))
    looked = Looked(context, "events -f -s emerg")
    assert "0 events, 29 did not arrive" in looked.lines()[0]
    looked = Looked(context, "events -f")
    assert "2 events, 29 did not arrive" in looked.lines()[0]
    assert [line.split()[1:4] for line in looked.rows()[:2]] == [["warn", "lost", "5"], ["warn", "lost", "12"]]
    assert f"12 events of agent {ALPHA} did not arrive" in looked.rows()[1]
    looked.navigator.open()
    assert any(line.split() == ["count", "5", "events", "that", "did", "not", "arrive"] for line in looked.lines())
    looked = Looked(context, "watch /home")
    looked.navigator.tab(number=2)
    looked.update()
    assert "1 event, 24 did not arrive" in looked.lines()[0]


def test_arguments_of_events_are_shortened_one_by_one(context: Context) -> None:
    event = full_event("/srv")
    values = {"user": "a" * 40, "args": {}, "name": "orders", "label": ""}
    context.events.add(attrs.evolve(event, schema=None, values=values))
    (line,) = [line for line in Looked(context, "events -f").lines(80) if "orders" in line]
    assert "user=aaa" in line
    assert "…" in line
    assert line.endswith("name=orders")


def test_the_events_of_an_object_are_those_that_name_it(context: Context) -> None:
    for mount in ("/home", "/", "/home"):
        context.events.add(full_event(mount))
    looked = Looked(context, "watch /home")
    looked.navigator.tab(number=2)
    looked.update()
    assert "2 events" in looked.lines()[0]


def test_events_call_objects_by_their_property_name(context: Context, of_a_broker: FakeBackend) -> None:
    of_a_broker.records = [queue("mq1,/,orders", name="orders")]
    context.events.add(attrs.evolve(full_event(), schema=None, values={"qName": "orders"}))
    context.events.add(attrs.evolve(full_event(), schema=None, values={"qName": "other"}))
    looked = Looked(context, "watch queue")
    looked.navigator.tab(number=2)
    looked.update()
    assert "1 event" in looked.lines()[0]


def test_arguments_stay_when_events_are_left(context: Context) -> None:
    context.events.add(full_event("/home/" + "x" * 60, at=time.time_ns()))
    looked = Looked(context, "events -f")
    output = make_output()
    output.screen.show(looked.navigator.page.result(looked.navigator.page.model.window(10)[1]))
    assert any("mountPoint=/home/" in line for line in output.lines)


def test_the_only_objects_of_classes_of_one_name_are_shown_side_by_side(context: Context, backend: FakeBackend) -> None:
    first = process(1)
    (other,) = [key for key in backend.keys if (key.package, key.name) == ("com.other", "process")]
    key = ObjectKey("com.other:process:9", ALPHA)
    backend.records = [first, attrs.evolve(first, identity=ObjectIdentity(key, other, "9"))]
    assert "process 1 and 1 more" in Looked(context, "watch process").lines()[0]
    backend.records.append(process(2))
    assert Looked(context, "watch process").lines()[0].split()[:3] == ["classes", "2", "classes"]


def test_own_things_are_counted_and_shown_by_a_key(context: Context, of_a_broker: FakeBackend) -> None:
    own = "qmf-1_qmf-in-2b0b32a4-4a38-4f8e-a1a5-6b3c8a8c2d11"
    of_a_broker.records = [queue(own), queue("qmf-1_qmf-in-2b0b32a4-4a38-4f8e-a1a5-6b3c8a8c2d12")]
    classes = Looked(context, "watch")
    assert "2 own left out" in classes.lines()[0]
    classes.navigator.toggle_own()
    classes.update()
    assert any(line.split()[:2] == ["queue", "2"] for line in classes.rows())
    looked = Looked(context, "watch org.apache.qpid.broker:queue where msgDepth = 1")
    assert looked.rows()[1] == "2 of agents and consoles not shown; a shows them."
    assert ("a", "own things") in looked.navigator.keys
    of_a_broker.records.append(queue("orders"))
    looked.update()
    assert [line.split()[1] for line in looked.rows()] == ["orders"]
    assert "2 own left out" in looked.lines()[0]
    looked.navigator.toggle_own()
    looked.update()
    assert len(looked.rows()) == 3
    assert "left out" not in looked.lines()[0]
    looked.navigator.toggle_own()
    looked.update()
    assert [line.split()[1] for line in looked.rows()] == ["orders"]
    page = Looked(context, "watch filesystem")
    page.navigator.toggle_own()
    assert page.navigator.message.startswith("there is nothing here")


def test_own_events_are_counted_and_shown_by_a_key(context: Context) -> None:
    own = {"qName": "qmf-1_qmf-in-2b0b32a4-4a38-4f8e-a1a5-6b3c8a8c2d11"}
    declared = attrs.evolve(full_event(), name="org.apache.qpid.broker:queueDeclare", schema=None, values=own)
    context.events.add(declared)
    looked = Looked(context, "events -f")
    assert "1 own left out" in looked.lines()[0]
    looked.navigator.toggle_own()
    looked.update()
    assert "1 event" in looked.lines()[0]
    assert "left out" not in looked.lines()[0]
    context.events.add(declared)
    looked.update()
    assert "2 events" in looked.lines()[0]
    looked.navigator.toggle_own()
    looked.update()
    assert "2 own left out" in looked.lines()[0]


def test_objects_of_several_agents_with_one_index_are_told_apart(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem")
    assert "Agent" not in looked.lines(100)[1]
    backend.records.append(filesystem("/", BETA))
    looked.update()
    assert looked.lines(100)[1].split()[:3] == ["ID", "Index", "Agent"]
    assert [line.split()[1:3] for line in looked.rows()][:2] == [["/", ALPHA], ["/", BETA]]


def test_an_event_page_keeps_a_limited_number(context: Context) -> None:
    looked = Looked(context, "events -f")
    page = looked.navigator.page
    for number in range(KEPT + 500):
        context.events.add(full_event(f"/{number}"))
        if number % 400 == 0:  # a session keeps fewer
            looked.update()
    looked.update()
    assert len(page.model) == KEPT
    context.events.add(full_event("/last"))
    looked.update()
    assert len(page.model) == KEPT
    assert "/last" in looked.rows()[0]


def test_heartbeats_show_how_agents_are(context: Context, backend: FakeBackend) -> None:
    now = time.time_ns()
    broker = "amqp://127.0.0.1:5672"
    context.heartbeats.add(HeartbeatRecord(ALPHA, now, now, 10, broker))
    context.heartbeats.add(HeartbeatRecord(ALPHA, now, now + 20 * SECOND, 10, broker))
    context.heartbeats.add(HeartbeatRecord(BETA, now - 40 * SECOND, now - 40 * SECOND, 10, broker))
    backend.known_agents.append(agent("example.org:host:gamma"))
    looked = Looked(context, "heartbeats -f")
    states = {line.split()[0]: line.split()[1] for line in looked.rows()}
    assert states == {ALPHA: "alive", BETA: "late", "example.org:host:gamma": "no"}
    del backend.known_agents[1]
    looked.update()
    assert "gone" in next(line for line in looked.lines() if line.startswith(BETA))
    assert "1 late or gone" in looked.lines()[0]
    looked.navigator.open()
    looked.update()
    assert len(looked.rows()) == 2
    assert looked.styles("20s") == "class:cursor class:warning"


def test_top_sorts_by_the_rate(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "top filesystem by bytesRead")
    looked.update()
    for number, more in enumerate((100, 5000)):
        item = backend.records[number]
        values = {**item.values, "bytesRead": 1234567 + more}
        backend.records[number] = attrs.evolve(item, values=values, updated=item.updated + SECOND)
    looked.update()
    assert "by bytesRead/s descending" in looked.lines()[0]
    assert [line.split()[1] for line in looked.rows()] == ["/", "/home"]


def test_texts_end_at_a_blank() -> None:
    assert cut_end("name of the queue", 12) == "name of the…"
    assert cut_end("name of the queue", 14) == "name of the…"
    assert cut_end("longwordwithoutblanks", 8) == "longwor…"
    assert cut_end("short", 8) == "short"
    assert cut_end("short", 0) == ""
