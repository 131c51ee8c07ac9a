"""From text to the kind of suggestion, and from the kind to names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.commands import standard
from qmf_shell.completion import (
    ArgumentNames,
    ArgumentValue,
    ClassNames,
    CommandNames,
    MethodNames,
    Nothing,
    ObjectNames,
    OptionNames,
    Wanted,
    analyse,
)
from qmf_shell.session.context import Context
from qmf_shell.session.snapshot import Snapshot
from qmf_shell.suggestions import MOST, suggest
from shell.world import FILESYSTEM, SCHEMAS, FakeSource, filesystem, process

REGISTRY = standard()
LIST = REGISTRY.find("list")
EVENTS = REGISTRY.find("events")


@pytest.mark.parametrize(
    ("text", "wanted", "prefix", "start"),
    [
        ("", CommandNames(), "", 0),
        ("  ", CommandNames(), "", 2),
        ("li", CommandNames(), "li", 0),
        ("help ", CommandNames(), "", 5),
        ("help ca", CommandNames(), "ca", 5),
        ("help call ", Nothing(), "", 0),
        ("list ", ClassNames(True, False), "", 5),
        ("list fi", ClassNames(True, False), "fi", 5),
        ("LIST fi", ClassNames(True, False), "fi", 5),
        ("schema fi", ClassNames(True, True), "fi", 7),
        ("events ", ClassNames(False, True), "", 7),
        ("events -f fi", ClassNames(False, True), "fi", 10),
        ("events -n ", Nothing(), "", 0),
        ("events -n 5 ", ClassNames(False, True), "", 12),
        ("events -", OptionNames(EVENTS), "-", 7),
        ("list --a", OptionNames(LIST), "--a", 5),
        ("list -a ", ClassNames(True, False), "", 8),
        ("list filesystem ", ObjectNames("filesystem"), "", 16),
        ("list filesystem / /h", ObjectNames("filesystem"), "/h", 18),
        ("show ", ObjectNames(None), "", 5),
        ("show 101 '/a b", ObjectNames(None), "/a b", 9),
        ("call ", ObjectNames(None), "", 5),
        ("call 101 ", MethodNames("101"), "", 9),
        ("call '/a b' ec", MethodNames("/a b"), "ec", 12),
        ("call 101 echo ", ArgumentNames("101", "echo", (), 0), "", 14),
        ("call 101 echo 7 ", ArgumentNames("101", "echo", (), 1), "", 16),
        ("call 101 echo body=x 7 ", ArgumentNames("101", "echo", ("body",), 1), "", 23),
        ("call 101 echo body=he", ArgumentValue("101", "echo", "body"), "he", 19),
        ("call 101 echo 'body=he", ArgumentNames("101", "echo", (), 0), "body=he", 14),
        ("call 101 configure {", Nothing(), "", 0),
        ("agents ", Nothing(), "", 0),
        ("nonsense ", Nothing(), "", 0),
        ("# list ", Nothing(), "", 0),
        ("show a\\", Nothing(), "", 0),
    ],
)
def test_kinds(text: str, wanted: Wanted, prefix: str, start: int) -> None:
    question = analyse(text, REGISTRY)
    assert (question.wanted, question.prefix, question.start) == (wanted, prefix, start)


@given(st.text(max_size=40))
def test_any_text_has_a_kind(text: str) -> None:
    for line in (text, f"call 101 {text}", f"list {text}"):
        assert 0 <= analyse(line, REGISTRY).start <= len(line)


SNAPSHOT = Snapshot(
    schemas=dict(SCHEMAS),
    objects=tuple(
        item.known for item in (filesystem("/"), filesystem("/home"), filesystem("/a b"), process(101), process(4711))
    ),
)


@pytest.fixture
def listed() -> Context:
    """A session in which / and /home were listed: 101 and 102."""
    context = Context(FakeSource([]), REGISTRY)
    for index in ("/", "/home"):
        context.ids.give(filesystem(index).known)
    return context


def offered(context: Context, text: str, snapshot: Snapshot = SNAPSHOT) -> list[str]:
    return [item.text for item in suggest(analyse(text, REGISTRY), snapshot, context.ids, REGISTRY)]


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("s", ["show", "schema"]),
        ("list -", ["--active"]),
        ("list fi", ["filesystem"]),
        ("list FI", ["filesystem"]),
        ("list system", ["filesystem"]),
        ("list pro", ["com.other:process", "org.example:process"]),
        ("list com", ["com.other:process"]),
        ("schema filesystem", ["filesystem", "filesystemFull"]),
        ("events ", ["filesystemFull"]),
        ("show ", ["101", "102", "'/a b'", "process:101", "process:4711"]),
        ("show 1", ["101", "102", "process:101"]),
        ("show /h", ["102"]),
        ("show '/a", ["'/a b'"]),
        ("list process ", ["101", "4711"]),
        ("list org.example:filesystem ", ["101", "102", "'/a b'"]),
        ("call 101 ", ["echo", "configure", "sync"]),
        ("call /home e", ["echo"]),
        ("call process:4711 ", ["signal"]),
        ("call 999 ", []),
        ("call 101 echo ", ["sequence=", "body="]),
        ("call 101 echo 7 ", ["body="]),
        ("call 101 echo body=x ", ["sequence="]),
        ("call 101 echo 7 x ", []),
        ("call 101 configure {} force=", ["true", "false"]),
        ("call 101 configure {} like=/h", ["102"]),
        ("call 101 nomethod ", []),
    ],
)
def test_names(listed: Context, text: str, texts: list[str]) -> None:
    assert offered(listed, text) == texts


def test_meta_tells_what_it_is(listed: Context) -> None:
    def meta(text: str) -> str:
        return suggest(analyse(text, REGISTRY), SNAPSHOT, listed.ids, REGISTRY)[0].meta

    assert meta("show 101") == "filesystem /"
    assert meta("list filesystem") == "A mounted filesystem"
    assert meta("call 101 echo ") == "uint32: Any number"
    assert meta("call 101 configure {} ") == "bool, default false"
    assert meta("call 101 ec") == "Send back what it gets"
    assert meta("events files") == "No space is left"


def test_dead_objects_are_not_offered(listed: Context) -> None:
    listed.ids.bury(filesystem("/").known.key, 5)
    assert "101" not in offered(listed, "show ", Snapshot(schemas=dict(SCHEMAS)))


def test_names_of_peers_cannot_reach_the_terminal(listed: Context) -> None:
    evil = Snapshot(schemas=dict(SCHEMAS), objects=(filesystem("\x1b[31m").known,))
    question = analyse("list filesystem ", REGISTRY)
    (found,) = [item for item in suggest(question, evil, listed.ids, REGISTRY) if "31m" in item.shown]
    assert "\x1b" not in found.shown + found.meta


def test_no_more_than_a_menu_can_hold(listed: Context) -> None:
    many = Snapshot(schemas={FILESYSTEM.key: FILESYSTEM}, objects=tuple(filesystem(f"/{n}").known for n in range(1000)))
    assert len(offered(listed, "list filesystem /", many)) == MOST


def test_an_unknown_schema_is_no_obstacle(listed: Context) -> None:
    assert offered(listed, "list fi", Snapshot(schemas={FILESYSTEM.key: None})) == ["filesystem"]
    assert offered(listed, "call 101 ", Snapshot(schemas={FILESYSTEM.key: None})) == []
