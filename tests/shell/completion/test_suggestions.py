"""From the kind of completion to names."""

from __future__ import annotations

import pytest
from qmf_shell.commands import standard
from qmf_shell.completion.analysis import analyse
from qmf_shell.completion.data import CompletionData
from qmf_shell.completion.kinds import (
    CompletionRequest,
)
from qmf_shell.completion.selection_analysis import SELECTION_WORDS
from qmf_shell.completion.suggestions import MAX_SUGGESTIONS, Suggestion, suggest
from qmf_shell.session.context import Context
from qmf_shell.session.name_cache import NameSnapshot
from shell.fakes import FILESYSTEM, SCHEMAS, FakeBackend, filesystem, process

REGISTRY = standard()

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

FORMATS = ["--json", "--csv", "--yaml", "--table"]

WORDS = [word for word, _ in SELECTION_WORDS]

OPERATORS = ["=", "==", "!=", "<", "<=", ">", ">=", "~", "!~", "and", "or"]
OPERATORS += ["sort", "columns", "limit", "active", "wide"]


@pytest.mark.parametrize(
    ("text", "texts"),
    [
        ("s", ["show", "schema", "setprop", "set", "source"]),
        ("q", ["quit", "q"]),
        ("list -", ["--active", "--lost", "--wide", "--exact", "--all", *FORMATS, "--help"]),
        ("list fi", ["filesystem"]),
        ("list FI", ["filesystem"]),
        ("list system", ["filesystem"]),
        ("list pro", ["com.other:process", "org.example:process"]),
        ("list com", ["com.other:process"]),
        ("schema filesystem", ["filesystem", "filesystemFull"]),
        ("events ", ["filesystemFull", "where", "from", "to"]),
        ("show ", ["101", "102", "'/a b'", "process:101", "process:4711", *CLASSES]),
        ("show 1", ["101", "102", "process:101"]),
        ("show process:", ["process:101", "process:4711"]),
        ("show /h", ["102"]),
        ("show '/a", ["'/a b'"]),
        ("list process ", ["101", "4711", *WORDS]),
        ("list org.example:filesystem ", ["101", "102", "'/a b'", *WORDS]),
        ("list filesystem where by", ["bytesRead"]),
        ("list filesystem where orders ha", []),
        ("list filesystem where h", ["has"]),
        ("list filesystem where has by", ["bytesRead"]),
        ("list filesystem where has label a", ["and", "active"]),
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
        ("agents; list fi", ["filesystem"]),
        ("agents\nq", ["quit", "q"]),
        ("agents | q", []),
        ("agents > /nosuch/", []),
        ("agents # q", []),
    ],
)
def test_names(listed: Context, text: str, texts: list[str]) -> None:
    assert offered(listed, text) == texts


def test_meta_describes_the_name(listed: Context) -> None:
    def meta(text: str) -> str:
        return ask(listed, text)[0].meta

    assert meta("show 101") == "filesystem /"
    assert meta("list filesystem") == "A mounted filesystem"
    assert meta("call 101 echo ") == "uint32, in/out: Any number"
    assert meta("call 101 configure {} ") == "bool, default false"
    assert meta("call 101 ec") == "Send back what it gets"
    assert meta("events files") == "No space is left"


def test_destroyed_objects_are_not_suggested(listed: Context) -> None:
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


def test_contexts_are_offered(listed: Context) -> None:
    contexts = (("lab", ("amqp://mq1", "amqp://mq2")), ("production", ("amqps://mq3",)))
    data = CompletionData(SNAPSHOT, listed.ids, standard(), contexts=contexts)
    found = suggest(analyse("use l", standard()), data)
    assert [(item.text, item.meta) for item in found] == [("lab", "amqp://mq1, amqp://mq2")]
