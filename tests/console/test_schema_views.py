"""Schemas of the published API."""

from __future__ import annotations

from support.scripted_agent import ALARM, PACKAGE, WIDGET

from qmf.console import ClassKey, SchemaClass


def test_a_class_is_described_with_codes() -> None:
    view = SchemaClass(WIDGET, ClassKey(WIDGET.key))
    assert repr(view) == f"Table Class: {view.getKey()!r} "
    assert (view.kind, view.getArguments()) == (SchemaClass.CLASS_KIND_TABLE, [])
    name, label, level, _, parent = view.getProperties()
    assert (name.name, name.type, name.access, name.index, name.optional) == ("name", 6, "1", True, False)
    assert (label.access, label.optional, label.maxlen) == ("2", True, 10)
    assert (level.min, level.max) == (1, 9)
    assert (parent.type, parent.refPackage, parent.refClass) == (10, PACKAGE, "widget")
    assert [(item.name, item.type) for item in view.getStatistics()] == [
        ("turns", 4),
        ("load", 3),
        ("loadHigh", 3),
        ("loadLow", 3),
        ("delaySamples", 9),
        ("delayMin", 9),
        ("delayMax", 9),
        ("delayAverage", 9),
    ]
    delay = view.getStatistics()[4]
    assert (delay.unit, delay.desc) == ("nanoseconds", "Delay (Samples)")
    echo, link, stop = view.getMethods()
    assert (repr(echo), echo.desc) == ("echo(sequence, body)", "Says it again")
    assert [(item.name, item.dir, item.default) for item in link.arguments] == [
        ("target", "I", None),
        ("force", "I", False),
        ("made", "O", None),
    ]
    assert repr(stop) == "stop()"
    assert [repr(item) for item in (name, delay, echo.arguments[0])] == ["name", "delaySamples", "sequence"]


def test_an_event_is_described_by_its_arguments() -> None:
    view = SchemaClass(ALARM, ClassKey(ALARM.key))
    assert (view.kind, view.getProperties(), view.getMethods()) == (SchemaClass.CLASS_KIND_EVENT, [], [])
    assert [(item.name, item.type) for item in view.getArguments()] == [("name", 6), ("level", 1), ("since", 8)]
    assert not hasattr(view.getArguments()[0], "dir")
    assert repr(view).startswith("Event Class: ")
