"""`list`: classes, objects, selections."""

from __future__ import annotations

import attrs
import pytest
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import names_class
from shell.fakes import (
    ALPHA,
    BETA,
    NOON,
    SECOND,
    FakeBackend,
    filesystem,
    process,
)
from shell.line_runner import failure, printed, rows

from qmf.schema import ClassKey


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.split("  ") if cell.strip()]


def test_list_counts_what_is_there_now(context: Context, backend: FakeBackend) -> None:
    def counts() -> dict[str, int]:
        return {words[1]: int(words[2]) for line in printed(context, "list")[3:] if (words := line.split())}

    assert counts() == {"filesystem": 2, "process": 2}
    backend.records.append(filesystem("/new"))
    assert counts()["filesystem"] == 3


def test_list_a_class(context: Context) -> None:
    lines = printed(context, "list filesystem")
    assert lines[0] == "org.example:filesystem, 2 objects"
    assert lines[1].split() == ["ID", "Index", "bytesRead", "openFiles", "latency", "uptime"]
    assert lines[2].split() == ["files"]
    assert [cells(line) for line in rows(lines)] == [
        ["101", "/", "1.23 MB", "12", "3.2ms", "1d 3h"],
        ["102", "/home", "1.23 MB", "12", "3.2ms", "1d 3h"],
    ]


def test_a_class_without_statistics_is_listed_with_times(context: Context) -> None:
    lines = printed(context, "list org.example:process")
    assert lines[1].split() == ["ID", "Created", "Destroyed", "Index"]


def test_numbers_are_exact_on_demand(context: Context) -> None:
    lines = printed(context, "list filesystem -e")
    assert lines[2].split() == ["octets", "files"]
    assert [cells(line)[2:5] for line in rows(lines)] == [["1,234,567", "12", "3,200,000 ns"]] * 2


def test_numbers_stay_from_list_to_list(context: Context, backend: FakeBackend) -> None:
    printed(context, "list filesystem")
    backend.records.insert(0, filesystem("/a"))
    lines = rows(printed(context, "list filesystem"))
    assert {line.split()[1]: line.split()[0] for line in lines} == {"/": "101", "/home": "102", "/a": "103"}


@pytest.mark.parametrize("name", ["FileSystem", "org.example:filesystem", "ORG.example:Filesystem"])
def test_classes_are_found_in_any_case(context: Context, name: str) -> None:
    assert printed(context, f"list {name}")[0] == "org.example:filesystem, 2 objects"


def test_a_name_in_two_packages_lists_both(context: Context) -> None:
    lines = printed(context, "list process")
    assert lines[0] == "No objects of com.other:process."
    assert lines[2] == "org.example:process, 2 objects"


def test_objects_are_sorted_as_people_count(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem(index) for index in ("eth10", "eth2", "eth1", "lo")]
    assert [line.split()[1] for line in rows(printed(context, "list filesystem"))] == ["eth1", "eth2", "eth10", "lo"]


def test_the_agent_is_named_where_there_are_several(context: Context, backend: FakeBackend) -> None:
    backend.records.append(filesystem("/", BETA))
    lines = printed(context, "list filesystem")
    assert lines[1].split()[-1] == "Agent"
    assert {line.split()[-1] for line in rows(lines)} == {ALPHA, BETA}


def test_objects_whose_key_is_a_number_are_listed_with_their_name(context: Context, backend: FakeBackend) -> None:
    thing = process(1)
    backend.records = [attrs.evolve(thing, identity=attrs.evolve(thing.identity, title="init"))]
    lines = printed(context, "list org.example:process")
    assert lines[1].split()[-2:] == ["Index", "Name"]
    assert lines[3].split()[-2:] == ["1", "init"]


def test_destroyed_objects_are_listed_with_their_end(context: Context, backend: FakeBackend) -> None:
    printed(context, "list filesystem")
    gone = backend.records.pop(0)
    context.ids.mark_deleted(gone.identity.key, NOON + 5 * SECOND)
    lines = printed(context, "list filesystem")
    assert lines[0] == "org.example:filesystem, 1 object, 1 destroyed"
    assert cells(lines[-1])[2] != "-"
    assert printed(context, "list -a filesystem")[0] == "org.example:filesystem, 1 object"


def test_list_with_ids_shows_side_by_side(context: Context) -> None:
    lines = printed(context, "list filesystem", "list filesystem 101 /home")
    assert lines[1].split() == ["Type", "Element", "101", "102"]
    assert ["config", "mountPoint", "/", "/home"] in [line.split() for line in lines]


@pytest.mark.usefixtures("nine_filesystems")
def test_the_condition_goes_to_the_agents(context: Context, backend: FakeBackend) -> None:
    lines = printed(context, "list filesystem where threshold > 70")
    assert backend.wheres[-1] == ["gt", "threshold", ["quote", 70]]
    assert lines[0] == "org.example:filesystem, 2 objects"
    assert [line.split()[:4] for line in rows(lines)] == [["101", "/8", "80", "%"], ["102", "/9", "90", "%"]]


@pytest.mark.usefixtures("nine_filesystems")
def test_order_columns_and_limit(context: Context) -> None:
    lines = printed(context, "list filesystem sort by threshold desc columns label limit 2")
    assert lines[1].split() == ["ID", "Index", "label"]
    assert [line.split()[1:] for line in lines[3:5]] == [["/9", "x" * 9], ["/8", "x" * 8]]
    assert lines[5] == "7 more beyond the limit"


@pytest.mark.usefixtures("nine_filesystems")
def test_all_columns(context: Context) -> None:
    lines = printed(context, "list filesystem columns all limit 1")
    assert lines[1].split()[2:6] == ["mountPoint", "label", "parent", "threshold"]


@pytest.mark.usefixtures("nine_filesystems")
def test_nothing_matches(context: Context) -> None:
    assert printed(context, "list filesystem where threshold > 200") == [
        "No objects of org.example:filesystem that match."
    ]


def test_active_leaves_out_destroyed_objects(context: Context, backend: FakeBackend) -> None:
    printed(context, "list filesystem")
    gone = backend.records.pop(0)
    context.ids.mark_deleted(gone.identity.key, NOON)
    context.deletions.add(("org.example", "filesystem"))
    assert printed(context, "list filesystem")[0].endswith("1 destroyed")
    assert printed(context, "list filesystem active")[0] == "org.example:filesystem, 1 object"
    assert next(line.split() for line in printed(context, "list") if "filesystem" in line)[2:] == ["1", "1"]


def test_objects_of_several_brokers_name_their_broker(context: Context, backend: FakeBackend) -> None:
    one, two = filesystem("/"), filesystem("/")
    key = attrs.evolve(two.identity.key, broker="amqp://mq2")
    backend.records = [one, attrs.evolve(two, identity=attrs.evolve(two.identity, key=key)), process(1)]
    lines = printed(context, "list filesystem")
    assert [line.split()[0] for line in rows(lines)] == ["101", "102"]
    assert {line.split("  ")[-1] for line in rows(lines)} == {ALPHA, f"{ALPHA} at amqp://mq2"}


def test_all_objects_of_a_class_in_full(context: Context) -> None:
    assert printed(context, "list filesystem all") == printed(context, "show filesystem")
    assert "Element" in printed(context, "list filesystem all")[1]
    assert "no object 'all'" in failure(context, "list filesystem 'all'")


def test_classes_with_objects(context: Context) -> None:
    assert {line.split()[1] for line in printed(context, "list active")[3:]} == {"filesystem", "process"}
    assert printed(context, "list all") == printed(context, "list")


def test_as_qpid_tool_lists(context: Context) -> None:
    def as_tool(line: str) -> list[str]:
        notice, *lines = printed(context, f"set lists qpid-tool; {line}")
        assert notice == "lists is qpid-tool"
        return lines

    lines = as_tool("list filesystem")
    assert lines[1].split() == ["ID", "Created", "Destroyed", "Index"]
    assert lines[3].split() == ["101", "2024-05-01", "11:59:00", "-", "/"]
    assert as_tool("list filesystem columns threshold")[1].split()[2:] == ["threshold"]
    assert as_tool("list filesystem active") == printed(context, "show filesystem")


@pytest.mark.parametrize("name", ["org.example:filesystem", "org.example.filesystem", "ORG.EXAMPLE.FileSystem"])
def test_a_class_with_its_package(context: Context, name: str) -> None:
    assert printed(context, f"list {name}")[0] == "org.example:filesystem, 2 objects"


def test_the_package_of_brokers_has_its_old_name_as_well() -> None:
    key = ClassKey("org.apache.qpid.broker", "queue")
    assert all(names_class(f"{package}queue", key) for package in ("", "qpid.", "org.apache.qpid.broker."))
    assert not names_class("apache.queue", key)
    assert not names_class("qpid.queue", ClassKey("org.example", "queue"))
