"""`show`: objects by their names and ids."""

from __future__ import annotations

import attrs
import pytest
from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.session.context import Context
from shell.fakes import (
    FakeBackend,
    filesystem,
    make_output,
    process,
)
from shell.line_runner import failure, printed


def test_show_exactly(context: Context) -> None:
    lines = printed(context, "list filesystem", "show -e 101")
    values = {parts[1]: parts[2] for line in lines[3:] if len(parts := line.split(None, 2)) == 3}
    assert values["bytesRead"] == "1,234,567 octets"
    assert values["latency"] == "3,200,000 ns (min 80,000 ns, max 12,500,000 ns, 4 samples)"
    assert values["openFiles"] == "12 files (high 20, low 3)"


def test_show(context: Context) -> None:
    lines = printed(context, "list filesystem", "show 101")
    assert lines[0] == "org.example:filesystem /"
    values = {parts[1]: parts[2] for line in lines[3:] if len(parts := line.split(None, 2)) == 3}
    assert values["threshold"] == "90 %"
    assert values["bytesRead"] == "1.23 MB"
    assert values["openFiles"] == "12 files (high 20, low 3)"
    assert values["latency"] == "3.2ms (min 80µs, max 12.5ms, 4 samples)"
    assert values["uptime"] == "1d 3h 12m 5s"
    assert values["label"] == "-"
    assert values["options"] == '{"ro": true}'
    assert values["mounted"] == "2024-05-01 11:00:00"
    assert [line.split()[0] for line in lines[3:5]] == ["config", "config"]


@pytest.mark.parametrize("name", ["/home", "filesystem:/home", "org.example:filesystem:/home"])
def test_show_by_name(context: Context, name: str) -> None:
    assert printed(context, f"show {name}")[0] == "org.example:filesystem /home"


def test_a_name_with_its_class_asks_that_class_only(context: Context, backend: FakeBackend) -> None:
    printed(context, "show filesystem:/home")
    assert backend.asked == ["org.example:filesystem"]


def test_objects_are_asked_for_by_their_keys(context: Context, backend: FakeBackend) -> None:
    printed(context, "show filesystem:/home")
    keys = [["eq", "mountPoint", ["quote", text]] for text in ("filesystem:/home", "/home")]
    assert backend.wheres == [["or", *keys]]
    backend.wheres.clear()
    assert "no object '/nosuch'" in failure(context, "show /nosuch")
    assert backend.wheres[-1] == []


def test_objects_of_any_name_are_found(context: Context, backend: FakeBackend) -> None:
    odd = filesystem("/odd")
    identity = attrs.evolve(odd.identity, key=attrs.evolve(odd.identity.key, object_name="widget-3"))
    backend.records.append(attrs.evolve(odd, identity=identity))
    assert printed(context, "show widget-3")[0] == "org.example:filesystem /odd"


def test_objects_are_found_by_a_name_that_is_no_key(context: Context, backend: FakeBackend) -> None:
    backend.records[2] = attrs.evolve(process(1), values={"pid": 1, "name": "init"})
    assert printed(context, "show init")[0] == "org.example:process 1"
    assert printed(context, "show process:init")[0] == "org.example:process 1"


def test_show_fetches_anew(context: Context, backend: FakeBackend) -> None:
    printed(context, "list filesystem")
    backend.records[1] = filesystem("/", threshold=75)
    assert any("75 %" in line for line in printed(context, "show 101"))


def test_references_show_short_ids(context: Context, backend: FakeBackend) -> None:
    root = filesystem("/")
    backend.records = [root, filesystem("/home", parent=root.identity.key)]
    assert any("org.example:filesystem:/" in line for line in printed(context, "show /home"))
    assert any("102 (filesystem /)" in line for line in printed(context, "show /", "show /home"))


def test_values_beyond_the_schema_are_shown(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem("/", surprise="hello")]
    assert any(line.split() == ["other", "surprise", "hello"] for line in printed(context, "show /"))


def test_objects_of_two_classes_get_two_tables(context: Context) -> None:
    lines = printed(context, "show / process:1")
    assert [line for line in lines if line.startswith("org.")] == ["org.example:filesystem /", "org.example:process 1"]


def test_short_ids_win_over_keys(context: Context, backend: FakeBackend) -> None:
    backend.records.append(process(101))
    assert printed(context, "list filesystem", "show 101")[0] == "org.example:filesystem /"
    assert printed(context, "show process:101")[0] == "org.example:process 101"
    assert printed(context, "list process 101")[0] == "org.example:process 101"


def test_a_key_of_digits_without_short_id(context: Context) -> None:
    assert printed(context, "show 4711")[0] == "org.example:process 4711"


def test_ambiguous_names_list_candidates_with_their_short_ids(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem("1"), process(1)]
    error = failure(context, "show 1")
    assert "'1' names 2 objects: 101 org.example:filesystem 1 and 102 org.example:process 1; use the short id" in error
    assert printed(context, "show 102")[0] == "org.example:process 1"


def test_similar_classes_and_objects_are_suggested(context: Context) -> None:
    assert failure(context, "show filesytem").endswith("no object 'filesytem'; did you mean filesystem?")
    assert "did you mean" in failure(context, "watch proces")


def test_list_takes_an_object_of_a_class(context: Context) -> None:
    assert printed(context, "list process:4711") == printed(context, "show process:4711")
    assert printed(context, "list process:4711 filesystem:/")
    assert failure(context, "list nosuch:class").endswith("no class 'nosuch:class'")
    assert failure(context, "list process:4712").endswith("no object 'process:4712'")


def test_many_candidates_are_counted(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem("/", f"example.org:host:{n}") for n in range(8)]
    two = "101 org.example:filesystem / of example.org:host:0, 102 org.example:filesystem / of example.org:host:1"
    assert f"names 8 objects: {two}" in failure(context, "show /")
    assert failure(context, "show /").endswith("and 3 more; use the short id")


def test_a_listed_object_that_is_gone(context: Context, backend: FakeBackend) -> None:
    printed(context, "list filesystem")
    backend.records.clear()
    assert failure(context, "show 101") == "error: object 101 (filesystem /) is gone"


@pytest.mark.usefixtures("nine_filesystems")
def test_ranges(context: Context) -> None:
    printed(context, "list filesystem")
    assert printed(context, "list filesystem 103-105")[1].split() == ["Type", "Element", "103", "104", "105"]
    assert printed(context, "show 101-102 109")[1].split() == ["Type", "Element", "101", "102", "109"]
    assert printed(context, "show 101-109")[1].split()[2:] == [str(n) for n in range(101, 110)]
    output = make_output()
    assert execute("show 200-210", context, output.screen) is LineOutcome.FAILED
    assert output.errors == ["error: no object with a short id in '200-210'"]


@pytest.mark.usefixtures("nine_filesystems")
def test_show_a_class(context: Context) -> None:
    assert printed(context, "show filesystem limit 2")[1].split()[2:] == ["101", "102"]
    assert printed(context, "show filesystem where threshold > 200") == ["No objects of filesystem."]
