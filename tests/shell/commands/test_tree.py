"""`tree`."""

from __future__ import annotations

import json

import pytest
from qmf_shell.objects.relations import parents
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend, filesystem, process
from shell.line_runner import printed


@pytest.mark.usefixtures("family")
def test_tree(context: Context) -> None:
    lines = printed(context, "tree")
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
    assert len(printed(context, "tree -n 0")) == len(lines) + 4


def test_many_without_a_parent_are_counted(context: Context, backend: FakeBackend) -> None:
    backend.records = [process(number) for number in range(50)]
    lines = printed(context, "tree -n 3")
    assert len(lines) == 3 + 4
    assert lines[-1].split() == ["-", "47", "more", "of", "process", "-"]
    assert len(printed(context, "tree process")) == 3 + 50


@pytest.mark.usefixtures("family")
def test_tree_of_an_object_or_a_class(context: Context) -> None:
    assert "filesystem /home" in printed(context, "tree /home")[3]
    assert [line.split()[1:] for line in printed(context, "tree org.example:process")[3:]] == [["process", "7", "-"]]


@pytest.mark.usefixtures("family")
def test_programs_get_objects_with_their_parents_instead_of_a_drawing(context: Context) -> None:
    lines = printed(context, "tree --json")
    found = [json.loads(line) for line in lines]
    by_index = {item["index"]: item for item in found}
    assert len(found) == len(printed(context, "tree -n 0")) - 3
    assert (by_index["/"]["class"], by_index["/"]["parent"], by_index["/"]["below"]) == ("filesystem", None, 1)
    assert by_index["/home/1"]["parent"] == by_index["/home"]["id"]
    assert by_index["/home"]["object"] == "org.example:filesystem:/home"
    assert not any("u25" in line for line in lines)
    assert len(printed(context, "tree -n 2 --csv")) == 1 + 2 + 2 + 1
    assert json.loads(printed(context, "tree --json /home/1")[0])["parent"] == by_index["/home"]["id"]


def test_objects_that_are_each_others_parents_are_shown_once(context: Context, backend: FakeBackend) -> None:
    one, two = filesystem("/1"), filesystem("/2")
    backend.records = [filesystem("/1", parent=two.identity.key), filesystem("/2", parent=one.identity.key)]
    assert len(parents(backend.records)) == 1
    assert len(printed(context, "tree")) == 3 + 2


def test_a_long_chain_is_no_problem(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem("/0")]
    for n in range(1, 1500):
        backend.records.append(filesystem(f"/{n}", parent=backend.records[-1].identity.key))
    assert len(printed(context, "tree")) == 3 + 1500
