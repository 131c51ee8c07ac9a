"""One line, from text to output, and every mistake in one line."""

from __future__ import annotations

import json

import pytest
from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.render.styles import OutputStyle
from qmf_shell.results.result import Table, TableColumn
from qmf_shell.session.backend import ConnectionStatus
from qmf_shell.session.context import Context
from shell.fakes import (
    ALPHA,
    BETA,
    FakeBackend,
    Output,
    make_output,
)
from shell.line_runner import failure, printed, run

from qmf.errors import DisconnectedError, RemoteError, RequestTimeout


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("frobnicate", ["no command 'frobnicate'", "`help` lists them"]),
        ("lsit", ["did you mean list"]),
        ("list filesytem", ["no class 'filesytem'", "did you mean filesystem"]),
        ("list org.example:filesytem", ["did you mean org.example:filesystem"]),
        ("list filesystemFull", ["no class 'filesystemFull'"]),
        ("schema nosuch", ["no class or event class 'nosuch'"]),
        ("show /hom", ["no object '/hom'", "/home"]),
        ("show 99999", ["no object '99999'"]),
        ("show", ["ID is missing"]),
        ("show 'x", ["quote ' in column 6 is not closed"]),
        ("list filesystem 4711", ["no object '4711'"]),
        ("call / ecko", ["filesystem / has no method 'ecko'", "did you mean echo"]),
        ("call / xyzzy", ["it has echo, configure and sync"]),
        ("call / echo", ["sequence (uint32) and body (lstr) are missing", "echo sequence:uint32 body:lstr"]),
        ("call / echo 7", ["body (lstr) is missing"]),
        ("call / echo seven x", ["argument 'sequence' of echo (uint32)", "not a whole number", "'seven'"]),
        ("call / echo -1 x", ["argument 'sequence' of echo (uint32)", "must be 0 to 4294967295", "not -1"]),
        ("call / echo 7 x y", ["'y' is one argument too many"]),
        ("call / echo 7 x sequence=8", ["'sequence'", "given twice"]),
        ("call / echo seqence=8 x", ["no argument of echo 'seqence'", "did you mean sequence"]),
        ("call / configure nojson", ["argument 'options' of configure (map)", "not JSON"]),
        ("call / configure [1]", ["not a JSON object"]),
        ("call / configure {} maybe", ["'force'", "neither true nor false"]),
        ("call / configure {} like=/nowhere", ["no object '/nowhere'"]),
        ("call process:1 signal 65", ["argument 'number' of signal (uint8)", "must be 1 to 64", "not 65"]),
        ("events nosuch", ["no event class 'nosuch'"]),
        ("events -n x", ["option -n needs a number, not 'x'"]),
        ("help nosuch", ["no command 'nosuch'"]),
    ],
)
def test_mistakes(context: Context, backend: FakeBackend, line: str, parts: list[str]) -> None:
    error = failure(context, line)
    for part in parts:
        assert part in error
    assert backend.calls == []


FINDING = "still finding agents: 5 of 300 so far"


@pytest.mark.parametrize(
    ("line", "kind"), [("list filesytem", "class"), ("schema nosuch", "class or event class"), ("show /hom", "object")]
)
def test_nothing_is_said_to_be_missing_while_agents_are_being_found(
    context: Context, backend: FakeBackend, line: str, kind: str
) -> None:
    backend.status = ConnectionStatus("amqp://127.0.0.1:5672", finding=FINDING)
    assert failure(context, line) == f"error: {kind} {line.split()[-1]!r} is not known yet: {FINDING}"
    assert "no command 'frobnicate'" in failure(context, "frobnicate")


@pytest.mark.parametrize("line", ["agents", "list", "list filesystem"])
def test_lists_say_that_agents_are_being_found(context: Context, backend: FakeBackend, line: str) -> None:
    backend.status = ConnectionStatus("amqp://127.0.0.1:5672", finding=FINDING)
    backend.failures = {"*": FINDING}
    output = make_output()
    assert execute(line, context, output.screen) is LineOutcome.FAILED
    assert output.lines
    assert output.errors == [f"error: incomplete: {FINDING}"]


@pytest.mark.parametrize(
    ("raised", "text"),
    [
        (RemoteError("no\nway\x1b[31m", 7, ALPHA), f"error: agent {ALPHA}: no way\\x1b[31m (code 7)"),
        (RequestTimeout("method sync", ALPHA, 10), f"error: no answer to method sync from agent {ALPHA} within 10 s"),
        (DisconnectedError("amqp://h", "closed"), "error: not connected to amqp://h: closed"),
        (ZeroDivisionError("oops"), "error: internal error: ZeroDivisionError: oops (--verbose shows details)"),
    ],
)
def test_what_goes_wrong_elsewhere_is_one_line_too(
    context: Context, backend: FakeBackend, raised: Exception, text: str
) -> None:
    printed(context, "list filesystem")
    backend.error = raised
    assert failure(context, "call 101 sync") == text


def test_ctrl_c_gets_through(context: Context, backend: FakeBackend, output: Output) -> None:
    backend.error = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt):
        execute("list", context, output.screen)


def test_silent_agents_are_reported_and_count_as_failure(context: Context, backend: FakeBackend) -> None:
    backend.failures = {BETA: "no answer within 10 s"}
    output = make_output()
    assert execute("list filesystem", context, output.screen) is LineOutcome.FAILED
    assert output.lines[0] == "org.example:filesystem, 2 objects"
    assert output.errors == [f"error: incomplete: agent {BETA} did not answer: no answer within 10 s"]
    backend.failures = {}
    printed(context, "list filesystem")


@pytest.mark.parametrize("line", ["", "   ", "# comment", "! comment"])
def test_nothing_to_do(context: Context, output: Output, line: str) -> None:
    assert execute(line, context, output.screen) is LineOutcome.DONE
    assert output.lines + output.errors == []


def test_csv(context: Context, backend: FakeBackend) -> None:
    backend.answer = {"sequence": 7, "body": 'a "quoted", \x1b[31mtext'}
    assert run(context, "list filesystem columns label, options", style=OutputStyle.CSV).lines == [
        "id,index,label,options",
        '101,/,,"{""ro"": true}"',
        '102,/home,,"{""ro"": true}"',
    ]
    assert run(context, "call / echo 7 x", style=OutputStyle.CSV).lines == [
        "sequence,body",
        '7,"a ""quoted"", \\x1b[31mtext"',
    ]


def test_messages_are_for_people(context: Context, backend: FakeBackend) -> None:
    for style in (OutputStyle.JSON, OutputStyle.CSV):
        output = run(context, "call / sync", style=style)
        assert output.lines == []
        assert output.errors == ["sync of 101 filesystem /: done"]


def test_values_keep_their_names_in_json_and_csv(context: Context, backend: FakeBackend) -> None:
    row = json.loads(run(context, "list filesystem columns bytesRead limit 1", style=OutputStyle.JSON).lines[0])
    assert row == {"id": 101, "index": "/", "bytesRead": 1234567}
    assert run(context, "list filesystem columns bytesRead", style=OutputStyle.CSV).lines[0] == "id,index,bytesRead"
    backend.answer = {"bodyText": "x"}
    assert "bodyText" in json.loads(run(context, "call -y filesystem all sync", style=OutputStyle.JSON).lines[0])


def test_two_columns_of_one_name_have_different_keys_in_json() -> None:
    columns = (TableColumn("Index"), TableColumn("index"))
    output = make_output(OutputStyle.JSON)
    output.screen.show(Table(columns, (("/", 7),)))
    assert json.loads(output.lines[0]) == {"index": "/", "index_2": 7}
