"""What programs get of an object, in every command and format."""

from __future__ import annotations

import csv
import json

import attrs
import pytest
import yaml
from qmf_shell.objects.object_records import value_name
from qmf_shell.render.styles import OutputStyle
from qmf_shell.session.context import Context
from shell.fakes import FILESYSTEM, FakeBackend, filesystem
from shell.line_runner import run

from qmf.schema import TYPES, Access, Property
from qmf.views.units import shortest_float32


def values(context: Context, line: str) -> list[dict[str, object]]:
    return [json.loads(text) for text in run(context, line, style=OutputStyle.JSON).lines]


def test_all_commands_have_the_same_record(context: Context) -> None:
    (shown,) = values(context, "show /")
    assert shown == {
        "id": 101,
        "package": "org.example",
        "class": "filesystem",
        "agent": "example.org:host:alpha",
        "broker": "",
        "object": "org.example:filesystem:/",
        "index": "/",
        "created": "2024-05-01T11:59:00.000000000Z",
        "updated": "2024-05-01T12:00:00.000000000Z",
        "mountPoint": "/",
        "label": None,
        "parent": None,
        "threshold": 90,
        "mounted": "2024-05-01T11:00:00.000000000Z",
        "options": {"ro": True},
        "bytesRead": 1234567,
        "openFiles": {"value": 12, "high": 20, "low": 3},
        "latency": {"count": 4, "min": 80_000, "max": 12_500_000, "mean": 3_200_000},
        "uptime": 97_925_000_000_000,
    }
    assert values(context, "list filesystem /") == [shown]
    assert values(context, "list filesystem where mountPoint = /") == [shown]
    for line in ("watch -c 1 101", "watch -c 1 filesystem limit 1"):
        (watched,) = values(context, line)
        assert watched.pop("rates") == {"bytesRead": None}
        assert isinstance(watched.pop("time"), str)
        assert watched == shown


def test_one_object_is_one_line(context: Context) -> None:
    assert [row["index"] for row in values(context, "show filesystem")] == ["/", "/home"]
    assert [row["class"] for row in values(context, "show / process:1 /home")] == [
        "filesystem",
        "filesystem",
        "process",
    ]
    assert [row["index"] for row in values(context, "list filesystem columns threshold")] == ["/", "/home"]
    assert values(context, "list filesystem where threshold = 1") == []


def test_columns_of_csv(context: Context, backend: FakeBackend) -> None:
    backend.records.append(filesystem("/new", openFiles=None, openFilesHigh=None, openFilesLow=None))
    lines = run(context, "list filesystem columns openFiles, latency", style=OutputStyle.CSV).lines
    assert lines == [
        "id,index,openFiles,openFilesHigh,openFilesLow,latencyCount,latencyMin,latencyMax,latencyAvg",
        "101,/,12,20,3,4,80000,12500000,3200000",
        "102,/home,12,20,3,4,80000,12500000,3200000",
        "103,/new,,,,4,80000,12500000,3200000",
    ]
    (row,) = csv.DictReader(run(context, "watch -c 1 101", style=OutputStyle.CSV).lines)
    assert (row["openFilesHigh"], row["bytesRead"], row["bytesReadRate"]) == ("20", "1234567", "")


def test_yaml_has_a_document_per_object(context: Context) -> None:
    text = "\n".join(run(context, "show filesystem", style=OutputStyle.YAML).lines)
    assert list(yaml.safe_load_all(text)) == values(context, "show filesystem")
    assert run(context, "agents --yaml").lines[:2] == ["---", "agent: example.org:host:alpha"]


def test_yaml_cannot_move_the_cursor(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem("/", label="a\x1b[31m\u202e: yes")]
    text = "\n".join(run(context, "show filesystem", style=OutputStyle.YAML).lines)
    assert text.isascii()
    assert "\x1b" not in text
    assert yaml.safe_load(text)["label"] == "a\x1b[31m\u202e: yes"


def test_a_reference_is_the_name_of_the_object(context: Context, backend: FakeBackend) -> None:
    root = backend.records[1].identity.key
    backend.records[0] = filesystem("/home", parent=root)
    before = values(context, "show /home")
    run(context, "list filesystem")
    assert values(context, "show /home") == before
    assert before[0]["parent"] == "org.example:filesystem:/"


def test_a_destroyed_object_has_its_end(context: Context, backend: FakeBackend) -> None:
    run(context, "list filesystem")
    gone = backend.records.pop(0)
    context.ids.mark_deleted(gone.identity.key, 1_714_564_801 * 10**9)
    row = values(context, "list filesystem")[-1]
    assert (row["index"], row["destroyed"]) == ("/home", "2024-05-01T12:00:01.000000000Z")
    assert "updated" not in row


def test_values_never_hide_what_names_the_object(context: Context, backend: FakeBackend) -> None:
    assert [value_name(name) for name in ("agent", "lost", "depth")] == ["_agent", "_lost", "depth"]
    more = Property(name="agent", type=TYPES["sstr"], access=Access.RO)
    schema = attrs.evolve(FILESYSTEM, properties=(*FILESYSTEM.properties, more))
    backend.records = [attrs.evolve(filesystem("/", agent_="x"), schema=schema, values={"agent": "mine"})]
    (row,) = values(context, "show /")
    assert (row["agent"], row["_agent"]) == ("example.org:host:alpha", "mine")


@pytest.mark.parametrize(
    ("value", "shortest"),
    [
        (0.10000000149011612, 0.1),
        (16777216.0, 16777216.0),
        (3.4028234663852886e38, 3.4028235e38),
        (0.0, 0.0),
        (1e300, 1e300),
    ],
)
def test_floats_of_32_bits_have_the_digits_that_they_have(value: float, shortest: float) -> None:
    assert shortest_float32(value) == shortest


def test_floats_of_32_bits_everywhere(context: Context, backend: FakeBackend) -> None:
    more = Property(name="load", type=TYPES["float"], access=Access.RO)
    schema = attrs.evolve(FILESYSTEM, properties=(*FILESYSTEM.properties, more))
    backend.records = [attrs.evolve(filesystem("/"), schema=schema, values={"load": 0.10000000149011612})]
    assert values(context, "show /")[0]["load"] == 0.1
    (row,) = csv.DictReader(run(context, "list filesystem", style=OutputStyle.CSV).lines)
    assert row["load"] == "0.1"
