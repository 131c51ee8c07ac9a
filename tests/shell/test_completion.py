"""From text to the kind of suggestion, and from the kind to names."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.commands import standard
from qmf_shell.completion.analysis import analyse
from qmf_shell.completion.data import CompletionData
from qmf_shell.completion.kinds import (
    AnyOf,
    ArgumentNames,
    ArgumentValue,
    ClassNames,
    CommandNames,
    CompletionKind,
    CompletionRequest,
    EventValueNames,
    FileNames,
    Keywords,
    MethodNames,
    NoCompletion,
    ObjectNames,
    OptionNames,
    OptionValue,
    SettableNames,
    SettableValue,
    SettingNames,
    SettingValue,
    ValueNames,
    ValueOf,
)
from qmf_shell.completion.selection_analysis import SELECTION_WORDS
from qmf_shell.completion.suggestions import MAX_SUGGESTIONS, Suggestion, suggest
from qmf_shell.session.context import Context
from qmf_shell.session.name_cache import NameSnapshot
from shell.world import FILESYSTEM, SCHEMAS, FakeBackend, filesystem, process

REGISTRY = standard()
LIST = REGISTRY.find("list")
EVENTS = REGISTRY.find("events")
NOT = Keywords((("not", "the opposite"),))
WHERE = Keywords(SELECTION_WORDS[:1])
MANY = Keywords((SELECTION_WORDS[0], ("all", "all objects of the class")))
TARGET = AnyOf((ObjectNames(None), ClassNames(True, False)))
ALL_COLUMNS = Keywords((("all", "everything"),))


@pytest.mark.parametrize(
    ("text", "wanted", "prefix", "start"),
    [
        ("", CommandNames(), "", 0),
        ("  ", CommandNames(), "", 2),
        ("li", CommandNames(), "li", 0),
        ("help ", CommandNames(), "", 5),
        ("help ca", CommandNames(), "ca", 5),
        ("help call ", NoCompletion(), "", 0),
        ("list ", ClassNames(True, False), "", 5),
        ("list fi", ClassNames(True, False), "fi", 5),
        ("LIST fi", ClassNames(True, False), "fi", 5),
        ("schema fi", ClassNames(True, True), "fi", 7),
        ("events ", AnyOf((ClassNames(False, True), WHERE)), "", 7),
        ("events -f fi", AnyOf((ClassNames(False, True), WHERE)), "fi", 10),
        ("events -n ", OptionValue(EVENTS.options[1]), "", 10),
        ("events -n 5 ", AnyOf((ClassNames(False, True), WHERE)), "", 12),
        ("events a where b", AnyOf((EventValueNames(("a",)), NOT)), "b", 15),
        ("events -", OptionNames(EVENTS), "-", 7),
        ("list --a", OptionNames(LIST), "--a", 5),
        ("list -a ", ClassNames(True, False), "", 8),
        ("list filesystem ", AnyOf((ObjectNames("filesystem"), Keywords(SELECTION_WORDS))), "", 16),
        ("list filesystem / /h", AnyOf((ObjectNames("filesystem"), Keywords(SELECTION_WORDS))), "/h", 18),
        ("list fs where ", AnyOf((ValueNames("fs"), NOT)), "", 14),
        ("list fs where by", AnyOf((ValueNames("fs"), NOT)), "by", 14),
        ("list fs where (by", AnyOf((ValueNames("fs"), NOT)), "by", 15),
        ("list fs where not by", AnyOf((ValueNames("fs"), NOT)), "by", 18),
        ("list fs where a > ", ValueOf("fs", "a"), "", 18),
        ("list fs where a>5", ValueOf("fs", "a"), "5", 16),
        ("list fs where a > 5 and b", AnyOf((ValueNames("fs"), NOT)), "b", 24),
        ("list fs sort ", AnyOf((ValueNames("fs"), Keywords((("by", ""),)))), "", 13),
        ("list fs limit ", NoCompletion(), "", 14),
        ("list fs columns a,b", AnyOf((ValueNames("fs"), ALL_COLUMNS)), "b", 18),
        ("show ", TARGET, "", 5),
        ("show 101 '/a b", AnyOf((ObjectNames(None), Keywords(SELECTION_WORDS))), "/a b", 9),
        ("call ", TARGET, "", 5),
        ("call 101 ", AnyOf((MethodNames("101"), MANY)), "", 9),
        ("call -y 101 ", AnyOf((MethodNames("101"), MANY)), "", 12),
        ("call '/a b' ec", AnyOf((MethodNames("/a b"), MANY)), "ec", 12),
        ("call fs all ", MethodNames("fs"), "", 12),
        ("call fs all echo ", ArgumentNames("fs", "echo", (), 0), "", 17),
        ("call fs where a > 1 echo ", ArgumentNames("fs", "echo", (), 0), "", 25),
        ("call fs where a > 1 and b", AnyOf((ValueNames("fs"), NOT)), "b", 24),
        ("setprop 101 ", SettableNames("101", ()), "", 12),
        ("setprop 101 a=1 b=x", SettableValue("101", "b"), "x", 18),
        ("set ", SettingNames(), "", 4),
        ("set pager ", SettingValue("pager"), "", 10),
        ("record ", Keywords((("on", "start"), ("off", "stop"))), "", 7),
        ("record on x", FileNames(), "x", 10),
        ("export fs x", FileNames(), "x", 10),
        ("watch ", TARGET, "", 6),
        ("plot 101 ", ValueNames("101", True), "", 9),
        ("top fs b", AnyOf((Keywords((("by", "followed by a statistic"),)), ValueNames("fs", True))), "b", 7),
        ("top fs by b", ValueNames("fs", True), "b", 10),
        ("call 101 echo ", ArgumentNames("101", "echo", (), 0), "", 14),
        ("call 101 echo 7 ", ArgumentNames("101", "echo", (), 1), "", 16),
        ("call 101 echo body=x 7 ", ArgumentNames("101", "echo", ("body",), 1), "", 23),
        ("call 101 echo body=he", ArgumentValue("101", "echo", "body"), "he", 19),
        ("call 101 echo 'body=he", ArgumentNames("101", "echo", (), 0), "body=he", 14),
        ("call 101 configure {", NoCompletion(), "", 0),
        ("agents ", NoCompletion(), "", 0),
        ("nonsense ", NoCompletion(), "", 0),
        ("# list ", NoCompletion(), "", 0),
        ("show a\\", NoCompletion(), "", 0),
    ],
)
def test_kinds(text: str, wanted: CompletionKind, prefix: str, start: int) -> None:
    question = analyse(text, REGISTRY)
    assert (question.kind, question.prefix, question.start) == (wanted, prefix, start)


@given(st.text(max_size=40))
def test_any_text_has_a_kind(text: str) -> None:
    for line in (text, f"call 101 {text}", f"call fs where {text}", f"list {text}", f"list fs where {text}"):
        assert 0 <= analyse(line, REGISTRY).start <= len(line)


SNAPSHOT = NameSnapshot(
    schemas=dict(SCHEMAS),
    objects=tuple(
        item.identity
        for item in (filesystem("/"), filesystem("/home"), filesystem("/a b"), process(101), process(4711))
    ),
)


@pytest.fixture
def listed() -> Context:
    """A session in which / and /home were listed: 101 and 102."""
    context = Context(FakeBackend([]), REGISTRY)
    for index in ("/", "/home"):
        context.ids.assign(filesystem(index).identity)
    return context


def ask(context: Context, text: str, snapshot: NameSnapshot = SNAPSHOT) -> list[Suggestion]:
    question: CompletionRequest = analyse(text, REGISTRY)
    return suggest(question, CompletionData(snapshot, context.ids, REGISTRY, (("q", "list queue"),)))


def offered(context: Context, text: str, snapshot: NameSnapshot = SNAPSHOT) -> list[str]:
    return [item.text for item in ask(context, text, snapshot)]


CLASSES = ["com.other:process", "filesystem", "org.example:process"]
WORDS = [word for word, _ in SELECTION_WORDS]
OPERATORS = ["=", "!=", "<", "<=", ">", ">=", "~", "!~", "and", "or", "sort", "columns", "limit", "active"]


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("s", ["show", "schema", "setprop", "set"]),
        ("q", ["quit", "q"]),
        ("list -", ["--active", "--help"]),
        ("list fi", ["filesystem"]),
        ("list FI", ["filesystem"]),
        ("list system", ["filesystem"]),
        ("list pro", ["com.other:process", "org.example:process"]),
        ("list com", ["com.other:process"]),
        ("schema filesystem", ["filesystem", "filesystemFull"]),
        ("events ", ["filesystemFull", "where"]),
        ("show ", ["101", "102", "'/a b'", "process:101", "process:4711", *CLASSES]),
        ("show 1", ["101", "102", "process:101"]),
        ("show process:", ["process:101", "process:4711"]),
        ("show /h", ["102"]),
        ("show '/a", ["'/a b'"]),
        ("list process ", ["101", "4711", *WORDS]),
        ("list org.example:filesystem ", ["101", "102", "'/a b'", *WORDS]),
        ("list filesystem where by", ["bytesRead"]),
        ("list filesystem where latency", ["latencyCount", "latencyMin", "latencyMax", "latencyAvg"]),
        ("list filesystem where threshold > 5 l", ["limit"]),
        ("list filesystem where threshold ", OPERATORS),
        ("list filesystem where threshold >", []),
        ("list filesystem columns label,thr", ["threshold"]),
        ("list filesystem sort threshold d", ["desc"]),
        ("plot 101 th", ["threshold"]),
        ("plot 101 by", ["bytesRead"]),
        ("setprop 101 ", ["threshold="]),
        ("set pager ", ["auto", "off"]),
        ("events where mo", ["mountPoint"]),
        ("events -s c", ["crit"]),
        ("call filesystem all s", ["sync"]),
        ("call filesystem where threshold > 5 s", ["sync"]),
        ("call 101 ", ["echo", "configure", "sync", "where", "all"]),
        ("call /home e", ["echo"]),
        ("call process:4711 ", ["signal", "where", "all"]),
        ("call 999 ", ["where", "all"]),
        ("call 101 echo ", ["sequence=", "body="]),
        ("call 101 echo 7 ", ["body="]),
        ("call 101 echo body=x ", ["sequence="]),
        ("call 101 echo 7 x ", []),
        ("call 101 configure {} force=", ["true", "false"]),
        ("call 101 configure {} like=/h", ["102"]),
        ("call 101 nomethod ", []),
        ("export filesystem /nosuch/", []),
    ],
)
def test_names(listed: Context, text: str, texts: list[str]) -> None:
    assert offered(listed, text) == texts


def test_meta_tells_what_it_is(listed: Context) -> None:
    def meta(text: str) -> str:
        return ask(listed, text)[0].meta

    assert meta("show 101") == "filesystem /"
    assert meta("list filesystem") == "A mounted filesystem"
    assert meta("call 101 echo ") == "uint32, in/out: Any number"
    assert meta("call 101 configure {} ") == "bool, default false"
    assert meta("call 101 ec") == "Send back what it gets"
    assert meta("events files") == "No space is left"


def test_dead_objects_are_not_offered(listed: Context) -> None:
    listed.ids.mark_deleted(filesystem("/").identity.key, 5)
    assert "101" not in offered(listed, "show ", NameSnapshot(schemas=dict(SCHEMAS)))


def test_names_of_peers_cannot_reach_the_terminal(listed: Context) -> None:
    evil = NameSnapshot(schemas=dict(SCHEMAS), objects=(filesystem("\x1b[31m").identity,))
    (found,) = [item for item in ask(listed, "list filesystem ", evil) if "31m" in item.shown]
    assert "\x1b" not in found.shown + found.meta


def test_no_more_than_a_menu_can_hold(listed: Context) -> None:
    many = NameSnapshot(
        schemas={FILESYSTEM.key: FILESYSTEM}, objects=tuple(filesystem(f"/{n}").identity for n in range(1000))
    )
    assert len(offered(listed, "setprop filesystem:/", many)) == MAX_SUGGESTIONS
    assert len(offered(listed, "list filesystem /", many)) < MAX_SUGGESTIONS


def test_an_unknown_schema_is_no_obstacle(listed: Context) -> None:
    assert offered(listed, "list fi", NameSnapshot(schemas={FILESYSTEM.key: None})) == ["filesystem"]
    assert offered(listed, "call 101 ", NameSnapshot(schemas={FILESYSTEM.key: None})) == ["where", "all"]
