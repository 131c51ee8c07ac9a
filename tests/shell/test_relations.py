"""find, tree and refs."""

from __future__ import annotations

import attrs
import pytest
from qmf_shell.modes.executor import Outcome, execute
from qmf_shell.objects.relations import parent_property, parents
from qmf_shell.session.context import Context
from shell.world import FILESYSTEM, PROCESS, FakeBackend, filesystem, make_output, process

from qmf.schema import TYPES, ClassSchema, Property


def run(context: Context, line: str) -> list[str]:
    output = make_output()
    assert execute(line, context, output.screen) is Outcome.DONE, output.errors
    return output.lines


@pytest.fixture
def family(backend: FakeBackend) -> None:
    root = filesystem("/")
    home = filesystem("/home", parent=root.identity.key, label="houses")
    backend.things = [
        root,
        home,
        *(filesystem(f"/home/{n}", parent=home.identity.key) for n in range(1, 26)),
        process(7),
    ]


@pytest.mark.usefixtures("family")
def test_tree(context: Context) -> None:
    lines = run(context, "tree")
    assert lines[0] == "Objects below their parents"
    shown = [line[9:].split("  ")[0] if not line[9:].startswith(" ") else line[9:].rstrip() for line in lines[3:7]]
    assert shown[0] == "filesystem /"
    assert shown[1].startswith("└─ filesystem /home")
    assert [line.removesuffix("-").rstrip() for line in shown[2:]] == [
        "   ├─ filesystem /home/1",
        "   ├─ filesystem /home/2",
    ]
    assert any("└─ 5 more of filesystem" in line for line in lines)
    assert "process 7" in lines[-1]
    assert len(run(context, "tree -n 0")) == len(lines) + 4


def test_many_without_a_parent_are_counted(context: Context, backend: FakeBackend) -> None:
    backend.things = [process(number) for number in range(50)]
    lines = run(context, "tree -n 3")
    assert len(lines) == 3 + 4
    assert lines[-1].split() == ["-", "47", "more", "of", "process", "-"]
    assert len(run(context, "tree process")) == 3 + 50


@pytest.mark.usefixtures("family")
def test_tree_of_an_object_or_a_class(context: Context) -> None:
    assert "filesystem /home" in run(context, "tree /home")[3]
    assert [line.split()[1:] for line in run(context, "tree org.example:process")[3:]] == [["process", "7", "-"]]


def test_objects_that_are_each_others_parents_are_shown_once(context: Context, backend: FakeBackend) -> None:
    one, two = filesystem("/1"), filesystem("/2")
    backend.things = [filesystem("/1", parent=two.identity.key), filesystem("/2", parent=one.identity.key)]
    assert len(parents(backend.things)) == 1
    assert len(run(context, "tree")) == 3 + 2


def test_a_long_chain_is_no_problem(context: Context, backend: FakeBackend) -> None:
    backend.things = [filesystem("/0")]
    for n in range(1, 1500):
        backend.things.append(filesystem(f"/{n}", parent=backend.things[-1].identity.key))
    assert len(run(context, "tree")) == 3 + 1500


def reference(name: str, *, index: bool = False, optional: bool = False, parent_ref: bool = False) -> Property:
    return Property(name=name, type=TYPES["objId"], index=index, optional=optional, parent_ref=parent_ref)


@pytest.mark.parametrize(
    ("properties", "parent"),
    [
        ((reference("a"), reference("b", parent_ref=True)), "b"),
        ((reference("a"), reference("b", index=True)), "b"),
        ((reference("a", optional=True), reference("b")), "b"),
        ((reference("a", optional=True),), None),
        ((), None),
    ],
)
def test_which_reference_is_the_parent(properties: tuple[Property, ...], parent: str | None) -> None:
    found = parent_property(ClassSchema(package="p", name="c", properties=properties))
    assert (found.name if found else None) == parent


def test_an_optional_parent_counts_where_it_is_marked(backend: FakeBackend) -> None:
    marked = attrs.evolve(FILESYSTEM, properties=(reference("parent", optional=True, parent_ref=True),))
    assert parent_property(marked) is not None
    assert parent_property(PROCESS) is None


@pytest.mark.usefixtures("family")
def test_refs(context: Context) -> None:
    lines = run(context, "refs /home")
    assert lines[0] == "References of 101 filesystem /home"
    assert lines[3].split() == ["to", "102", "filesystem", "/", "parent"]
    assert len(lines) == 3 + 1 + 25
    assert lines[4].split()[0] == "from"
    assert lines[4].split()[2:] == ["filesystem", "/home/1", "parent"]
    assert run(context, "refs process:7") == ["process 7 has no references, in either direction."]


@pytest.mark.usefixtures("family")
def test_refs_of_the_only_object_of_a_class(context: Context) -> None:
    assert run(context, "refs org.example:process") == ["process 7 has no references, in either direction."]


def test_a_reference_to_what_is_not_there(context: Context, backend: FakeBackend) -> None:
    backend.things = [filesystem("/home", parent=filesystem("/").identity.key)]
    assert "not found" in run(context, "refs /home")[3]


@pytest.mark.usefixtures("family")
def test_find(context: Context) -> None:
    lines = run(context, "find HOUSES")
    assert lines[0] == "1 match"
    assert lines[3].split() == ["101", "filesystem", "/home", "label", "houses"]
    rows = [line.split()[1:3] for line in run(context, "find space")[3:]]
    assert rows == [["event", "org.example:filesystemFull"]]
    assert any("method" in line and "echo" in line for line in run(context, "find send back"))
    assert run(context, "find nothing like this") == ["Nothing contains 'nothing like this'."]


@pytest.mark.usefixtures("family")
def test_find_has_a_limit(context: Context) -> None:
    lines = run(context, "find -n 3 /home")
    assert lines[0] == "26 matches"
    assert lines[-1] == "23 more; find -n 0 shows all"
    assert len(run(context, "find -n 0 /home")) == 3 + 26


def test_find_looks_into_maps_and_numbers(context: Context, backend: FakeBackend) -> None:
    backend.things = [filesystem("/", options={"a": ["needle"]}), filesystem("/b", threshold=77)]
    assert run(context, "find needle")[3].split()[3:] == ["options", "needle"]
    assert any("threshold" in line for line in run(context, "find 77"))
