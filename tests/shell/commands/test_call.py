"""`call` on one object and on many, with questions for what is missing."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
from qmf_shell.modes.executor import LineOutcome, execute
from qmf_shell.session.context import Context
from qmf_shell.session.prompts import PromptCancelledError
from shell.fakes import (
    FakeBackend,
    filesystem,
    make_output,
    process,
)
from shell.line_runner import failure, printed, run

from qmf.errors import QmfError, RemoteError


@pytest.mark.parametrize(
    ("line", "name", "arguments"),
    [
        ("call 101 echo 7 'hello world'", "echo", {"sequence": 7, "body": "hello world"}),
        ("call 101 echo body=hello sequence=0x10", "echo", {"sequence": 16, "body": "hello"}),
        ("call 101 echo body=hello 7", "echo", {"sequence": 7, "body": "hello"}),
        ("call 101 echo 7 'body=x'", "echo", {"sequence": 7, "body": "body=x"}),
        ("call 101 echo 7 ''", "echo", {"sequence": 7, "body": ""}),
        ("call 101 ECHO 7 x", "echo", {"sequence": 7, "body": "x"}),
        ("call / sync", "sync", {}),
        ('call / configure {"a": [1, 2]}', "configure", {"options": {"a": [1, 2]}}),
        ('call / configure options={"a": "b c"} force=yes', "configure", {"options": {"a": "b c"}, "force": True}),
        ("call / configure {} like=/home", "configure", {"options": {}, "like": filesystem("/home").identity.key}),
        ("call 1 signal 15", "signal", {"number": 15}),
    ],
)
def test_call(context: Context, backend: FakeBackend, line: str, name: str, arguments: dict[str, object]) -> None:
    printed(context, "list filesystem", line)
    assert [(method, given) for _, method, given in backend.calls] == [(name, arguments)]


def test_call_shows_outputs_or_that_it_is_done(context: Context, backend: FakeBackend) -> None:
    backend.answer = {"sequence": 7, "body": "hello"}
    assert printed(context, "call / echo 7 hello") == [
        "echo of 101 filesystem /",
        "    sequence  7",
        "    body      hello",
    ]
    backend.answer = {}
    assert printed(context, "call / sync") == ["sync of 101 filesystem /: done"]


def test_the_method_decides_between_two_objects(context: Context, backend: FakeBackend) -> None:
    backend.records = [filesystem("1"), process(1)]
    printed(context, "call 1 signal 15")
    assert backend.calls == [("org.example:process:1", "signal", {"number": 15})]


@attrs.define
class FakePrompter:
    """Answers questions from a list; records the questions, and errors of answers."""

    answers: list[str] = attrs.field(factory=list)
    yes: bool = True
    asked: list[str] = attrs.field(factory=list)
    errors: list[str] = attrs.field(factory=list)

    def value(self, question: str, check: Callable[[str], object], default: str | None) -> str:
        self.asked.append(question)
        while self.answers:
            text = self.answers.pop(0)
            try:
                check(text)
            except QmfError as error:
                self.errors.append(str(error))
            else:
                return text
        raise PromptCancelledError("cancelled: nothing was called")

    def confirm(self, question: str) -> bool:
        self.asked.append(question)
        return self.yes

    def secret(self, question: str) -> str | None:
        raise AssertionError(question)


def test_missing_arguments_are_asked_for(context: Context, backend: FakeBackend) -> None:
    prompter = context.prompter = FakePrompter(["seven", "-1", "7", "hello world"])
    printed(context, "call / echo")
    assert backend.calls[-1][1:] == ("echo", {"sequence": 7, "body": "hello world"})
    assert prompter.asked == ["sequence (uint32) - Any number", "body (lstr) - Any text"]
    assert len(prompter.errors) == 2
    assert "not a whole number" in prompter.errors[0]
    assert "must be 0 to 4294967295" in prompter.errors[1]


def test_only_what_is_missing_is_asked_for(context: Context, backend: FakeBackend) -> None:
    prompter = context.prompter = FakePrompter(["7"])
    printed(context, "call / echo body=x")
    assert len(prompter.asked) == 1
    assert backend.calls[-1][2] == {"sequence": 7, "body": "x"}
    printed(context, "call / configure {}")
    assert len(prompter.asked) == 1


def test_giving_up_calls_nothing(context: Context, backend: FakeBackend) -> None:
    context.prompter = FakePrompter()
    assert failure(context, "call / echo") == "error: cancelled: nothing was called"
    assert backend.calls == []


def test_without_a_terminal_there_are_no_questions(context: Context) -> None:
    assert "are missing" in failure(context, "call / echo")


@pytest.fixture
def many(backend: FakeBackend) -> None:
    backend.records = [filesystem(f"/{n}", threshold=n) for n in range(1, 21)]


@pytest.mark.usefixtures("many")
def test_call_of_many(context: Context, backend: FakeBackend) -> None:
    backend.answer = {"sequence": 7, "body": "x"}
    lines = run(context, "call -y filesystem where threshold > 17 echo 7 x").lines
    assert lines[0] == "echo on 3 objects: 3 done, 0 failed"
    assert lines[1].split() == ["ID", "Object", "Result", "sequence", "body"]
    assert [line.split()[2:] for line in lines[3:]] == [[f"/{n}", "done", "7", "x"] for n in (18, 19, 20)]
    assert [name for name, _, _ in backend.calls] == [f"org.example:filesystem:/{n}" for n in (18, 19, 20)]


@pytest.mark.usefixtures("many")
def test_call_of_all_and_of_ranges(context: Context, backend: FakeBackend) -> None:
    printed(context, "call --yes filesystem all sync")
    assert len(backend.calls) == 20
    printed(context, "call -y 103-105 sync")
    printed(context, "call -y 101,107 sync")
    assert len(backend.calls) == 25


@pytest.mark.usefixtures("many")
def test_calls_of_many_are_confirmed(context: Context, backend: FakeBackend) -> None:
    assert failure(context, "call filesystem all sync") == (
        "error: sync would be called on 20 objects: confirm with call --yes"
    )
    prompter = context.prompter = FakePrompter(yes=False)
    assert failure(context, "call filesystem all sync") == "error: nothing was called"
    assert prompter.asked == ["Call sync on 20 objects (filesystem /1, filesystem /2, filesystem /3 and ...)?"]
    assert backend.calls == []
    prompter.yes = True
    printed(context, "call filesystem all sync")
    assert len(backend.calls) == 20
    context.settings.change("confirm", "off")


@pytest.mark.usefixtures("many")
def test_dry_run(context: Context, backend: FakeBackend) -> None:
    lines = run(context, "call -n filesystem where threshold < 3 sync").lines
    assert lines[0] == "sync would be called on 2 objects"
    assert backend.calls == []


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("condition", "objects"),
    [("/1", 11), ("/1 and threshold < 3", 1), ("(/1 threshold < 3)", 1), ("(/1 threshold<3) or /3", 2)],
)
def test_a_condition_ends_before_the_method(context: Context, condition: str, objects: int) -> None:
    line = run(context, f"call -n filesystem where {condition} sync").lines[0]
    assert line == f"sync would be called on {objects} object{'s' if objects > 1 else ''}"


@pytest.mark.usefixtures("many")
def test_failures_of_some_are_shown_and_counted(context: Context, backend: FakeBackend) -> None:
    backend.refusals = {"/19": RemoteError("disk is gone", 7, "a")}
    output = make_output()
    assert execute("call -y filesystem where threshold > 18 sync", context, output.screen) is LineOutcome.FAILED
    assert output.lines[0] == "sync on 2 objects: 1 done, 1 failed"
    assert "disk is gone" in output.lines[3]
    assert output.errors == ["error: sync failed on 1 of 2: agent a: disk is gone (code 7)"]


@pytest.mark.usefixtures("many")
def test_ctrl_c_shows_the_outcomes_so_far(context: Context, backend: FakeBackend) -> None:
    backend.stop_at = 5
    output = make_output()
    assert execute("call -y filesystem all sync", context, output.screen) is LineOutcome.FAILED
    assert output.lines[0] == "sync on 20 objects: 5 done, 0 failed, 15 not called or unanswered"
    assert output.errors == ["error: cancelled: 5 done, 0 failed, 15 not called or unanswered"]


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("call filesystem sync", ["filesystem is a class", "call filesystem where CONDITION sync"]),
        ("call filesystem where threshold > 1", ["METHOD is missing"]),
        ("call filesystem where threshold sync", ["threshold is a value of filesystem: write has threshold"]),
        ("call filesystem where (beta or not threshold) sync", ["write has threshold, or compare it"]),
        ("call filesystem where threshold >", ["expected a value after >"]),
        ("call filesystem all nosuch", ["has no method 'nosuch'"]),
        ("call nosuch all sync", ["no class 'nosuch'"]),
        ("call -x / sync", ["no option -x"]),
    ],
)
def test_mistakes(context: Context, backend: FakeBackend, line: str, parts: list[str]) -> None:
    error = failure(context, line)
    for part in parts:
        assert part in error
    assert backend.calls == []


@pytest.mark.usefixtures("many")
def test_no_object_matches(context: Context, backend: FakeBackend) -> None:
    assert run(context, "call filesystem where threshold > 99 sync").lines == [
        "No objects of filesystem match: nothing was called."
    ]
