"""Names that are something else than what was expected, and classes that stand for their only object."""

from __future__ import annotations

import attrs
import pytest
from qmf_shell.session.backend import ConnectionStatus
from qmf_shell.session.context import Context
from shell.fakes import ALPHA, OTHER_PROCESS, FakeBackend, filesystem, full_event, process
from shell.line_runner import failure, printed, table, view_of

from qmf.errors import DisconnectedError, NotFoundError
from qmf.views.objects import ObjectIdentity, ObjectKey, ObjectView


@pytest.fixture
def alone(context: Context, backend: FakeBackend) -> Context:
    """A session with one filesystem and two processes."""
    backend.records = [filesystem("/"), process(1), process(4711)]
    return context


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("call / bytesread", "bytesRead is a statistic of filesystem, not a method; show ID shows it"),
        ("call / openFilesHigh", "openFilesHigh is a statistic of filesystem, not a method; show ID shows it"),
        ("call / threshold", "threshold is a property of filesystem, not a method; setprop ID threshold=VALUE sets it"),
        ("call / ehco", "filesystem / has no method 'ehco'; did you mean echo?"),
        ("call / zzz", "filesystem / has no method 'zzz'; it has echo, configure and sync"),
        ("setprop / bytesRead=1", "bytesRead is a statistic of filesystem, not a property to set; it has threshold"),
        ("setprop / echo=1", "echo is a method of filesystem, not a property to set; it has threshold"),
        ("setprop / treshold=1", "no property of filesystem 'treshold'; did you mean threshold?"),
        ("setprop / THRESHOLD=1", "no property of filesystem 'THRESHOLD'; did you mean threshold?"),
        ("setprop / zzz=1", "no property of filesystem 'zzz' to set; it has threshold"),
        ("setprop process:1 zzz=1", "no property of process 'zzz' to set; it has none"),
        ("list filesystem columns sync", "sync is a method of filesystem, not a value; call ID sync calls it"),
        ("list filesystem where echo = 1", "echo is a method of filesystem, not a value; call ID echo calls it"),
        ("plot / sync", "sync is a method of filesystem, not a value; call ID sync calls it"),
        ("list filesystemFull", "no class 'filesystemFull': it is a class of events"),
        ("events process", "no event class 'process': it is a class of objects"),
    ],
)
def test_the_right_word(context: Context, backend: FakeBackend, line: str, message: str) -> None:
    assert failure(context, line) == f"error: {message}"
    assert backend.calls == []


def test_no_suggestion_is_only_a_number(context: Context) -> None:
    assert failure(context, "show 4712") == "error: no object '4712'"
    assert NotFoundError("object", "10", ["1", "100", "10a"]).near == ["10a"]


def test_a_class_with_one_object_stands_for_it(alone: Context, backend: FakeBackend) -> None:
    printed(alone, "show filesystem")
    printed(alone, "refs filesystem")
    assert view_of(alone, "plot filesystem threshold").frame() is not None
    backend.answer = {"sequence": 7, "body": "x"}
    assert printed(alone, "call filesystem echo 7 x")[0] == "echo of 101 filesystem /"
    printed(alone, "call org.example:Filesystem sync")
    printed(alone, "call / configure {} like=filesystem")
    printed(alone, "setprop filesystem threshold=80")
    assert backend.assigned == [("org.example:filesystem:/", {"threshold": 80})]
    assert [name for name, _, _ in backend.calls] == ["org.example:filesystem:/"] * 3
    (row,) = printed(alone, "list filesystem where parent = filesystem")
    assert row == "No objects of org.example:filesystem that match."


def test_watch_of_a_class_with_one_object_is_the_object(alone: Context) -> None:
    shown = printed(alone, "show filesystem")
    watched = printed(alone, "watch -c 1 filesystem")
    assert watched[0] == shown[0] == "org.example:filesystem /"
    names = [line.split()[:2] for line in shown if line.startswith(("    config", "    inst"))]
    assert [line.split()[:2] for line in watched if line.startswith(("    config", "    inst"))] == names
    several = printed(alone, "watch -c 1 org.example:process")
    assert several[0] == "org.example:process, 2 objects"
    columns = table(view_of(alone, "watch -c 1 filesystem columns threshold").frame())
    assert columns.title == "org.example:filesystem, 1 object"


def test_a_class_with_several_objects_does_not(alone: Context, backend: FakeBackend) -> None:
    assert failure(alone, "refs process") == (
        "error: 'process' names 2 objects: 101 org.example:process 1 and 102 org.example:process 4711; use the short id"
    )
    assert "process is a class: write call process where CONDITION signal, or all" in failure(
        alone, "call process signal 1"
    )
    assert backend.calls == []


def test_classes_of_one_name_in_two_packages(alone: Context, backend: FakeBackend) -> None:
    identity = ObjectIdentity(ObjectKey("com.other:process:7", ALPHA), OTHER_PROCESS.key, "7")
    backend.records = [filesystem("/"), process(1), ObjectView(identity, OTHER_PROCESS, {})]
    assert failure(alone, "refs process") == (
        "error: 'process' names 2 objects: 101 org.example:process 1 and 102 com.other:process 7; use the short id"
    )
    assert "101 org.example:process 1 and 102 com.other:process 7" in failure(alone, "call process sync")
    # Only one of them has the method.
    printed(alone, "call process signal 1")
    assert [name for name, _, _ in backend.calls] == ["org.example:process:1"]


def test_events_are_shown_without_a_connection(
    context: Context, backend: FakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    context.events.add(full_event("/home"))
    context.events.add(attrs.evolve(full_event("/"), name="com.other:filesystemFull"))
    backend.status = ConnectionStatus("amqp://mq1", False, "closed", "mq1")

    def lost() -> None:
        raise DisconnectedError("amqp://mq1", "closed")

    monkeypatch.setattr(type(backend), "classes", lambda self: lost())
    lines = printed(context, "events")
    assert lines[0] == "2 events"
    assert lines[-1] == "not connected to mq1"
    assert any("org.example:filesystemFull" in line for line in lines)
    assert printed(context, "events com.other:filesystemFull where mountPoint = /")[0] == "1 event"
    assert printed(context, "events filesystemfull")[0] == "2 events"
    assert printed(context, "events -s crit nosuch") == [
        "No such events since this session began; `events -w SECONDS` waits for them, `events -f` follows them."
    ]
