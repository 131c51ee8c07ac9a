"""Live screens without a terminal: what they draw at any size, and what keys do."""

from __future__ import annotations

import time
from datetime import UTC
from uuid import UUID

import attrs
import pytest
from qmf_shell.commands import standard
from qmf_shell.modes.executor import evaluate
from qmf_shell.render.formatting import Formatter
from qmf_shell.render.layout import display_width
from qmf_shell.results.result import LiveScreen
from qmf_shell.screens.drawing import Geometry, Surroundings, draw_page, ended, halves
from qmf_shell.screens.navigator import Navigator
from qmf_shell.screens.pages.events import KEPT
from qmf_shell.screens.state import Page
from qmf_shell.session.backend import (
    ConnectionStatus,
    GoneKind,
    HeartbeatRecord,
    ObjectIdentity,
    ObjectKey,
    ObjectRecord,
)
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

from qmf.schema import TYPES, ClassSchema, Property, Statistic

FORMATTER = Formatter(UTC, short=True)

QUEUE = ClassSchema(
    package="org.apache.qpid.broker",
    name="queue",
    hash=UUID(int=7),
    properties=(Property(name="name", type=TYPES["sstr"], index=True),),
    statistics=(Statistic(name="msgDepth", type=TYPES["uint32"]),),
)


def queue(index: str, name: str | None = None) -> ObjectRecord:
    key = ObjectKey(ALPHA, f"org.apache.qpid.broker:queue:{index}")
    return ObjectRecord(ObjectIdentity(key, QUEUE.key, index), QUEUE, {"name": name or index, "msgDepth": 1})


@pytest.fixture
def of_a_broker(backend: FakeBackend, monkeypatch: pytest.MonkeyPatch) -> FakeBackend:
    """A backend with a class of brokers."""
    monkeypatch.setitem(SCHEMAS, QUEUE.key, QUEUE)
    backend.keys = [*backend.keys, QUEUE.key]
    return backend


class Looked:
    """A screen without a terminal."""

    def __init__(self, context: Context, line: str) -> None:
        screen = evaluate(line, context)
        assert isinstance(screen, LiveScreen)
        page = screen.page()
        assert isinstance(page, Page)
        self.navigator = Navigator(context, page)
        self.geometry = Geometry()
        self.update()

    def update(self) -> None:
        """Load the page that is shown."""
        self.navigator.arrived(self.navigator.load(self.navigator.page))

    def lines(self, width: int = 100, height: int = 20, *, colour: bool = True) -> list[str]:
        """The texts of the lines; none may be wider than the screen."""
        around = Surroundings(
            formatter=FORMATTER,
            colour=colour,
            trail=self.navigator.trail,
            right="12:00:00  every 2 s",
            message=self.navigator.alarm(FORMATTER),
            keys=self.navigator.keys,
        )
        drawn = draw_page(self.navigator.page, around, self.geometry, width, height)
        texts = ["".join(text for _, text in line) for line in drawn]
        assert len(texts) == height
        assert all(display_width(text) <= width for text in texts)
        return [text.rstrip() for text in texts]

    def styles(self, part: str) -> str:
        """The style of the first piece of text that contains a part."""
        around = Surroundings(formatter=FORMATTER, message=None)
        drawn = draw_page(self.navigator.page, around, self.geometry, 120, 20)
        return next(style for line in drawn for style, text in line if part in text)

    def rows(self, width: int = 100, height: int = 20) -> list[str]:
        """The lines with rows."""
        lines = self.lines(width, height)
        first, count = self.geometry.body
        return [line for line in lines[first : first + count] if line]

    @property
    def text(self) -> str:
        return "\n".join(self.lines())


def test_a_class_with_the_rates_of_its_counters(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch -n 1 filesystem")
    assert "org.example:filesystem  2 objects" in looked.lines()[0]
    assert "  /s" in looked.lines()[1]
    first = filesystem("/", bytesRead=1234567)
    backend.records[1] = attrs.evolve(first, updated=first.updated)
    looked.update()
    backend.records[1] = attrs.evolve(filesystem("/", bytesRead=1234567 + 5000), updated=first.updated + 2 * 10**9)
    looked.update()
    assert "2.5 kB" in next(line for line in looked.lines() if " / " in line)
    assert looked.styles("1.24 MB") == "class:changed class:cursor"
    looked.navigator.rates()
    assert "/s" not in looked.lines()[1]
    looked.navigator.rates()
    assert "bytesRead/s" in looked.lines()[1]
    assert "  bytesRead " not in looked.lines()[1]


def test_every_size_can_be_drawn(context: Context) -> None:
    looked = Looked(context, "watch filesystem")
    for width in (1, 2, 5, 10, 20, 40, 80, 200):
        for height in (1, 2, 3, 4, 5, 6, 10, 24, 50):
            looked.lines(width, height)
            looked.lines(width, height, colour=False)


def test_sorting_filtering_and_conditions(context: Context, backend: FakeBackend) -> None:
    backend.records += [filesystem(f"/srv/{number}", threshold=number) for number in range(1, 6)]
    looked = Looked(context, "watch filesystem columns threshold sort threshold desc")
    assert "by threshold descending" in looked.lines()[0]
    looked.navigator.filter("srv")
    assert "/srv: 5 shown" in looked.lines(160)[0]
    looked.navigator.filter("threshold > 3 and index ~ srv")
    assert [line.split()[1] for line in looked.rows()] == ["/srv/5", "/srv/4"]
    looked.navigator.filter("nosuch > 3")
    assert "no value of filesystem 'nosuch'" in looked.lines()[-1]
    looked.navigator.filter("threshold >")
    assert looked.navigator.message
    assert looked.navigator.back()
    assert looked.navigator.page.model.filter == ""
    looked.navigator.filter("zzz")
    assert "Nothing matches 'zzz'." in looked.text


def test_deleted_lost_and_new_objects_are_marked(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem")
    looked.update()
    gone = backend.records.pop(0)
    backend.records.append(filesystem("/new", BETA))
    looked.update()
    assert "2 objects, 1 gone" in looked.lines()[0]
    assert any("/home" in line and "deleted" in line for line in looked.lines(160))
    assert looked.styles("/new") == "class:new"
    backend.records.append(gone)
    looked.update()
    assert "deleted" not in looked.text
    backend.feeds[0].kind = GoneKind.LOST
    backend.records.remove(gone)
    looked.update()
    assert any("/home" in line and "lost" in line for line in looked.lines(160))
    assert looked.styles("/home") == "class:lost"
    looked.navigator.page.clear_gone()
    assert "/home" not in looked.text


def test_objects_that_no_longer_match_leave(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem where agent ~ alpha and threshold > 50")
    assert "/home" in looked.text
    backend.records[0] = filesystem("/home", threshold=1)
    looked.update()
    assert "/home" not in looked.text


def test_pause_keeps_what_is_shown(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem columns threshold")
    looked.navigator.toggle()
    backend.records[0] = filesystem("/home", threshold=11)
    looked.update()
    assert " 11 " not in looked.text
    assert "PAUSED" in looked.navigator.right(FORMATTER)
    looked.navigator.pause()
    assert "11 %" in looked.text


def test_a_page_that_is_opened_while_paused_is_loaded(context: Context) -> None:
    looked = Looked(context, "watch filesystem")
    looked.navigator.pause()
    loads = [looked.navigator.loads]
    looked.navigator.open()
    loads.append(looked.navigator.loads)
    looked.update()
    assert "loading" not in looked.text
    assert "threshold" in looked.text
    assert [*loads, looked.navigator.loads] == [False, True, False]


def test_a_lost_connection_and_errors_are_shown(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem")
    looked.update()
    backend.status = ConnectionStatus("amqp://127.0.0.1:5672", connected=False, reason="connection refused")
    assert "no connection to amqp://127.0.0.1:5672: connection refused; it is retried; values of" in looked.lines()[-1]
    assert "/home" in looked.text
    backend.status = ConnectionStatus("amqp://127.0.0.1:5672")
    backend.error = RuntimeError("broken")
    looked.update()
    assert "internal error: RuntimeError: broken" in looked.lines()[-1]
    backend.error = None
    looked.update()
    assert "q leave" in looked.lines()[-1]


def test_thresholds_colour_values(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem columns openFiles")
    assert looked.navigator.threshold_column is None
    looked.navigator.page.model.sort_by("openFiles")
    looked.navigator.set_thresholds("5 10")
    assert looked.navigator.message == "openFiles: 5 and 10"
    assert looked.styles("12") == "class:cursor class:critical"
    assert "12!!" in "\n".join(looked.lines(colour=False))
    looked.navigator.set_thresholds("20 15")
    assert "class:critical" in looked.styles("12")
    looked.navigator.set_thresholds("10 1k")
    assert "class:warning" in looked.styles("12")
    looked.navigator.set_thresholds("x")
    assert "is not one number or two" in looked.navigator.message
    looked.navigator.set_thresholds("")
    assert looked.styles("12").strip() == "class:cursor"


def test_columns_are_chosen(context: Context) -> None:
    looked = Looked(context, "watch filesystem")
    looked.navigator.choose_columns()
    assert "columns of org.example:filesystem" in looked.lines()[0]
    looked.navigator.filter("uptime")
    looked.navigator.toggle()
    looked.navigator.open()
    looked.navigator.back()
    assert "uptime" not in "\n".join(looked.lines(200))
    assert "uptime" not in context.columns.names(("org.example", "filesystem"))
    looked.navigator.choose_sort()
    looked.navigator.filter("bytesRead")
    looked.navigator.open()
    looked.navigator.back()
    assert looked.navigator.page.model.sort == "bytesRead"


def test_an_object_is_opened_and_left(context: Context, backend: FakeBackend) -> None:
    looked = Looked(context, "watch filesystem")
    looked.navigator.open()
    looked.update()
    assert looked.lines()[0].startswith(" org.example:filesystem > filesystem /")
    assert any(line.startswith("bytesRead") and "1.23 MB" in line for line in looked.lines())
    backend.records = []
    looked.update()
    assert "it is gone since" in looked.lines()[-1]
    assert looked.navigator.back()
    assert not looked.navigator.back()
    looked.navigator.close()
    assert backend.feeds[0].closed


def test_help_is_shown_and_left(context: Context) -> None:
    looked = Looked(context, "watch filesystem")
    looked.navigator.help()
    assert "Up Down j k" in looked.text
    looked.navigator.open()
    assert "filesystem" in looked.lines()[0]


def test_what_was_on_the_screen_is_left_as_a_table(context: Context) -> None:
    looked = Looked(context, "watch filesystem columns threshold")
    looked.navigator.help()
    page = looked.navigator.last_page
    result = page.result(page.model.window(1)[1])
    assert (result.title, len(result.rows), result.note) == ("org.example:filesystem, 2 objects", 1, "1 more")  # type: ignore[union-attr]


@pytest.mark.parametrize("line", ["watch filesystem where nosuch > 1", "watch filesystem sort nosuch"])
def test_mistakes_are_found_before_the_terminal_changes(context: Context, line: str) -> None:
    with pytest.raises(Exception, match="no value of filesystem 'nosuch'"):
        evaluate(line, context)


@pytest.mark.parametrize("option", ["-p", "-c 3"])
def test_lines_are_for_those_who_want_them(option: str) -> None:
    context = Context(FakeBackend([filesystem("/")]), standard())
    assert not isinstance(evaluate(f"watch {option} filesystem", context), LiveScreen)


# -- other pages -------------------------------------------------------------------------------------------------------


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
    key = ObjectKey(ALPHA, "com.other:process:9")
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
    assert ended("name of the queue", 12) == "name of the…"
    assert ended("name of the queue", 14) == "name of the…"
    assert ended("longwordwithoutblanks", 8) == "longwor…"
    assert ended("short", 8) == "short"
    assert ended("short", 0) == ""


def test_long_headings_take_two_lines() -> None:
    assert halves("msgTotalEnqueues") == ("msgTotal", "Enqueues")
    assert halves("msgTotalEnqueues ▼") == ("msgTotal", "Enqueues ▼")
    assert halves("depth") == ("", "depth")
