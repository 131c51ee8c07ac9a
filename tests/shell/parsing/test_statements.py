"""Texts into commands, with pipes, redirections and comments."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_shell.parsing.statements import (
    CursorStatement,
    Place,
    Redirection,
    Statement,
    cursor_statement,
    split_statements,
)

from qmf.views.conditions.words import LineError


def commands(text: str) -> list[str]:
    found = split_statements(text)
    assert not any(item.program or item.redirection for item in found)
    return [item.command.strip() for item in found]


def only(text: str) -> Statement:
    (found,) = split_statements(text)
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" ; ;; \n ;", []),
        ("list", ["list"]),
        ("list;agents", ["list", "agents"]),
        ("list ; agents ;", ["list", "agents"]),
        ("list\nagents\n\nquit\n", ["list", "agents", "quit"]),
        ("list # all; of | them > x\nagents", ["list", "agents"]),
        ("# only this; really\n! and this | that\nagents", ["agents"]),
        ("agents; ! that is a comment", ["agents"]),
        ("show /a#b", ["show /a#b"]),
        ("call 1 say hi!", ["call 1 say hi!"]),
        ("call 1 say 'a;b|c>d#e'", ["call 1 say 'a;b|c>d#e'"]),
        ('call 1 say "a;b|c" ; agents', ['call 1 say "a;b|c"', "agents"]),
        ("call 1 say a\\;b", ["call 1 say a\\;b"]),
        ('call 1 m {"a": "x | y; z > 1 # 2"} z', ['call 1 m {"a": "x | y; z > 1 # 2"} z']),
        ("call 1 m x=[1,\n2]", ["call 1 m x=[1,\n2]"]),
        ("list queue where name ~ a|b", ["list queue where name ~ a|b"]),
        ("list queue where name~^a|b$", ["list queue where name~^a|b$"]),
        ("list queue where depth > 100", ["list queue where depth > 100"]),
        ("list queue where depth >100", ["list queue where depth >100"]),
        ("list queue where depth>100", ["list queue where depth>100"]),
        ("list queue where orders depth > 100", ["list queue where orders depth > 100"]),
        ("list queue where depth >= 100", ["list queue where depth >= 100"]),
        ("list queue where not depth > 100", ["list queue where not depth > 100"]),
        ("list queue where (a or depth > 100)", ["list queue where (a or depth > 100)"]),
        ("list queue where a = 1 and depth > 100", ["list queue where a = 1 and depth > 100"]),
        ("call queue where depth > 100 purge", ["call queue where depth > 100 purge"]),
        ("call 1 say a>b", ["call 1 say a>b"]),
    ],
)
def test_commands(text: str, expected: list[str]) -> None:
    assert commands(text) == expected


@pytest.mark.parametrize(
    ("text", "command", "program"),
    [
        ("list | head -3", "list", "head -3"),
        ("list|head", "list", "head"),
        ("list | awk '{print $1; print $2}' | sort > /tmp/x", "list", "awk '{print $1; print $2}' | sort > /tmp/x"),
        ("list queue where name ~ 'a|b' | wc -l", "list queue where name ~ 'a|b'", "wc -l"),
        ("list queue where name ~ a|b | wc -l", "list queue where name ~ a|b", "wc -l"),
        ("list queue where depth > 3 | tr [a-z] {A-Z}", "list queue where depth > 3", "tr [a-z] {A-Z}"),
        ("list | grep x # a comment", "list", "grep x"),
    ],
)
def test_pipes(text: str, command: str, program: str) -> None:
    found = only(text)
    assert (found.command.strip(), found.program, found.redirection) == (command, program, None)


@pytest.mark.parametrize(
    ("text", "command", "path", "append"),
    [
        ("list > out.txt", "list", "out.txt", False),
        ("list >out.txt", "list", "out.txt", False),
        ("list >> out.txt # more", "list", "out.txt", True),
        ("list > 'a b'", "list", "a b", False),
        ("list queue where depth > 100 > out", "list queue where depth > 100", "out", False),
        ("list queue where has depth > out", "list queue where has depth", "out", False),
        ("list queue where 'orders' > out", "list queue where 'orders'", "out", False),
        ("list queue where orders depth=5 > out", "list queue where orders depth=5", "out", False),
        ("list queue where (depth) > out", "list queue where (depth)", "out", False),
        ("list queue where depth > 1 sort depth > out", "list queue where depth > 1 sort depth", "out", False),
        ("list queue where (depth) >> out", "list queue where (depth)", "out", True),
        ("list queue where depth > 1 >> out", "list queue where depth > 1", "out", True),
        ("call queue where depth > 100 purge > out", "call queue where depth > 100 purge", "out", False),
    ],
)
def test_redirections(text: str, command: str, path: str, append: bool) -> None:
    found = only(text)
    assert found.command.strip() == command
    assert found.redirection == Redirection(path, append)
    assert found.program == ""


def test_each_command_has_its_own() -> None:
    first, second, third = split_statements("list | head; agents > x\nshow 1")
    assert (first.program, second.redirection, third.whole) == ("head", Redirection("x"), "show 1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("list |", "a program must follow the | in column 6"),
        ("list || agents", "a program must follow the | in column 6"),
        ("| head", "a command must precede the | in column 1"),
        ("agents; list >", "the name of a file must follow the > in column 14"),
        ("list >>", "the name of a file must follow the >> in column 6"),
        ("> x", "a command must precede the > in column 1"),
        ("list > 'x", "the quote ' in column 8 is not closed"),
    ],
)
def test_mistakes(text: str, reason: str) -> None:
    with pytest.raises(LineError) as caught:
        split_statements(text)
    assert str(caught.value) == reason


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ("list queue where msgDepth >> 3", 27),
        ("list queue where msgDepth >>3", 27),
        ("list queue where name = a and msgDepth >> 3", 40),
        ("agents; list queue where not msgDepth >> out", 39),
        ("list queue where >> out", 18),
    ],
)
def test_a_condition_is_no_place_for_a_redirection(text: str, column: int) -> None:
    with pytest.raises(LineError, match=f"the >> in column {column} is within a condition") as caught:
        split_statements(text)
    assert caught.value.column == column


def test_columns_are_those_of_the_line() -> None:
    _, second, third = split_statements("agents; list 'x'\nshow 1")
    assert second.command == "        list 'x'"
    assert third.command == "show 1"


@pytest.mark.parametrize(
    ("text", "start", "place"),
    [
        ("", 0, Place.COMMAND),
        ("list qu", 0, Place.COMMAND),
        ("agents; list qu", 7, Place.COMMAND),
        ("agents\nli", 7, Place.COMMAND),
        ("list | he", 6, Place.PROGRAM),
        ("list > fi", 6, Place.FILE),
        ("list >> ", 7, Place.FILE),
        ("list queue where depth > 1", 0, Place.COMMAND),
        ("list queue where depth > 1 > f", 28, Place.FILE),
        ("list # abc", 0, Place.COMMENT),
        ("call 1 say 'a; b", 0, Place.COMMAND),
    ],
)
def test_what_the_cursor_is_in(text: str, start: int, place: Place) -> None:
    assert cursor_statement(text) == CursorStatement(start, place)


@given(st.text(alphabet="ab >|;#!'\"\\{}[]=~(\n1", max_size=40))
def test_any_text_is_split_or_refused(text: str) -> None:
    cursor_statement(text)
    try:
        found = split_statements(text)
    except LineError:
        return
    for item in found:
        assert item.command.strip()
        assert item.command.strip() in text
