"""`schema`."""

from __future__ import annotations

import json

from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.context import Context
from shell.line_runner import printed, run


def test_schema_lists_classes_and_events(context: Context) -> None:
    rows = [line.split() for line in printed(context, "schema")[3:]]
    assert ["org.example", "filesystem", "object", "6", "4", "3"] in rows
    assert ["org.example", "filesystemFull", "event", "2", "-", "-"] in rows


def test_schema_of_a_class(context: Context) -> None:
    text = "\n".join(printed(context, "schema filesystem"))
    for part in (
        "Class org.example:filesystem (00000000-0000-0000-0000-000000000001)",
        "A mounted filesystem",
        "ReadCreate",
        "optional, at most 16 bytes",
        "1 to 100",
        "refers to filesystem",
        "Method echo: Send back what it gets",
        "in/out",
        "default false",
        "Method sync: Write everything (0 arguments)",
    ):
        assert part in text


def test_schema_of_an_event(context: Context) -> None:
    text = "\n".join(printed(context, "schema filesystemfull"))
    assert "Event org.example:filesystemFull" in text
    assert "Default severity: warn" in text
    assert "mountPoint" in text


def test_schema_in_json_is_one_tree(context: Context) -> None:
    tree = json.loads(run(context, "schema filesystem", style=OutputStyle.JSON).lines[0])
    assert tree[0]["class"] == "filesystem"
    assert tree[0]["properties"][3] == {
        "name": "threshold",
        "type": "uint8",
        "access": "RW",
        "unit": "percent",
        "min": 1,
        "max": 100,
    }
    assert [method["name"] for method in tree[0]["methods"]] == ["echo", "configure", "sync"]
