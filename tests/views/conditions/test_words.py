"""Lines into words: quotes, brackets, comments, unfinished lines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.views.conditions.words import LineError, Unclosed, is_comment, quote, split_line, split_partial


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("   ", []),
        ("list", ["list"]),
        ("  list\tfilesystem  ", ["list", "filesystem"]),
        ("call 101 echo 7 'hello world'", ["call", "101", "echo", "7", "hello world"]),
        ('x "a \\"b\\" \\\\ \\n"', ["x", 'a "b" \\ \\n']),
        ("x 'a\\'", ["x", "a\\"]),
        ("x a\\ b", ["x", "a b"]),
        ("x ''", ["x", ""]),
        ("x a'b c'd", ["x", "ab cd"]),
        ('call 1 m {"a": [1, 2], "b": "x } y"} z', ["call", "1", "m", '{"a": [1, 2], "b": "x } y"}', "z"]),
        ('m options={"a b": "\\""} x', ["m", 'options={"a b": "\\""}', "x"]),
        ("m [1, [2, 3]]", ["m", "[1, [2, 3]]"]),
        ("show a{b", ["show", "a{b"]),
        ("show a=b={c", ["show", "a=b={c"]),
        ("show /a#b", ["show", "/a#b"]),
    ],
)
def test_words(line: str, words: list[str]) -> None:
    assert [word.text for word in split_line(line)] == words


@pytest.mark.parametrize(
    ("line", "column", "part"),
    [
        ("show 'a", 6, "quote ' in column 6 is not closed"),
        ('show a "b c', 8, 'quote " in column 8'),
        ("show a\\", 7, "backslash in column 7"),
        ('call 1 m {"a": 1', 10, "{ in column 10 has no matching }"),
        ("call 1 m x=[1", 12, "[ in column 12 has no matching ]"),
        ("call 1 m {]", 10, "{ in column 10"),
    ],
)
def test_what_is_open_is_named(line: str, column: int, part: str) -> None:
    with pytest.raises(LineError) as caught:
        split_line(line)
    assert caught.value.column == column
    assert part in str(caught.value)


@pytest.mark.parametrize(
    ("word", "plain"), [("abc", 3), ("'abc'", 0), ("ab'c'", 2), ("a\\bc", 1), ("n={1}", 5), ("n='x=y'", 2)]
)
def test_plain_counts_what_stands_before_the_first_quote(word: str, plain: int) -> None:
    (found,) = split_line(word)
    assert found.plain == plain


@pytest.mark.parametrize(
    ("line", "before", "word", "start", "opened"),
    [
        ("", [], "", 0, None),
        ("li", [], "li", 0, None),
        ("list ", ["list"], "", 5, None),
        ("list fi", ["list"], "fi", 5, None),
        ("show 'a b", ["show"], "a b", 5, Unclosed.SINGLE),
        ('show "a', ["show"], "a", 5, Unclosed.DOUBLE),
        ("show a\\", ["show"], "a", 5, Unclosed.ESCAPE),
        ("call 1 m {", ["call", "1", "m"], "{", 9, Unclosed.JSON),
    ],
)
def test_unfinished_lines(line: str, before: list[str], word: str, start: int, opened: Unclosed | None) -> None:
    typed = split_partial(line)
    assert [item.text for item in typed.before] == before
    assert (typed.word.text, typed.word.start, typed.unclosed) == (word, start, opened)


@pytest.mark.parametrize(
    ("line", "comment"), [("", True), ("  ", True), ("# x", True), (" ! x", True), ("list", False), ("'#'", False)]
)
def test_comments(line: str, comment: bool) -> None:
    assert is_comment(line) is comment


@given(st.lists(st.text(max_size=12), max_size=5))
def test_quoted_words_come_back(words: list[str]) -> None:
    assert [word.text for word in split_line(" ".join(map(quote, words)))] == words


@given(st.text(max_size=40))
def test_any_line_splits_or_is_an_error(line: str) -> None:
    split_partial(line)
    column = 1
    try:
        words = split_line(line)
    except LineError as error:
        words, column = (), error.column
    assert 1 <= column <= max(1, len(line))
    assert all(line[word.start : word.end].strip() for word in words)


@pytest.mark.parametrize(("text", "quoted"), [("/home", "/home"), ("a b", "'a b'"), ("it's", '"it\'s"'), ("", "''")])
def test_quotes_only_where_needed(text: str, quoted: str) -> None:
    assert quote(text) == quoted
