"""Regular expressions from peers: useful ones work, costly ones are refused."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from qmf.errors import ProtocolError
from qmf.protocol.patterns import MAX_STEPS, MAX_TEXT, compile_pattern, search


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "^a.*b.*c$",
        "(foo|bar)",
        "(foo|bar)?",
        "[*+]+",
        "\\*\\+",
        "a{2,3}",
        "[]*]",
        "[^]*]x",
        "(?i:abc)",
        "x{y}",
        "(a+)b",
        "a*?b+?c??",
        "^(eu|us).*queue-[0-9]+$",
        "a|b|c|d|e",
        ".*foo.*bar.*",
        "a.*b.*c",
        "(?i)^queue[a-z]*[0-9]+",
        "(?P<site>eu|us)-",
        "(?=a)(?!b)(?<=c)(?<!d)(?:e)",
        "(a{1(b)})+",
    ],
)
def test_what_people_type_is_allowed(pattern: str) -> None:
    assert compile_pattern(pattern) is not None


@pytest.mark.parametrize(
    "pattern",
    ["(a+)+$", "(a*)*", "((a+)b)*", "(a|a)*$", "(a|ab)+", "(?:a+)+", "(a+){2,}", "([ab]*c){9}", "((a|b)c)+"],
)
def test_repetition_inside_a_repetition_is_refused(pattern: str) -> None:
    with pytest.raises(ProtocolError, match="inside a repetition"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    "pattern", ["a*" * 4, ".*.*.*.*x", "a+b+c+d+", "a{1,}" * 4, "a?" * 4, "(a|b)" * 4, "(a|b)?.*c+", "a*?" * 4]
)
def test_many_choices_are_refused(pattern: str) -> None:
    with pytest.raises(ProtocolError, match="more than 3 repetitions"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)(?#)+$",
        "(?x)(a+) +$",
        "(?x:(a+) +)$",
        "(?ix:(a+) +)$",
        "(?#[)(a+)+$(?#])",
        "(?>a+)b",
        "(a)?(?(1)b|c)",
        "(?P<a>a)(?P=a)",
        "(?-i:a)",
        "(?",
    ],
)
def test_what_could_hide_a_repetition_is_refused(pattern: str) -> None:
    with pytest.raises(ProtocolError, match="is not supported"):
        compile_pattern(pattern)


def test_braces_that_are_no_repetition_hide_none() -> None:
    with pytest.raises(ProtocolError, match="inside a repetition"):
        compile_pattern("x{1(a+)+}$")


@pytest.mark.parametrize(
    "pattern",
    [
        ".*.*.*\\d",
        "(?m)^.*.*.*\\d",
        "^x|.*.*.*\\d",
        "a*a*" + "a" * 100 + "b",
        "(.*).*\\1\\1b",
        "(?i)" + "[a-\uffff]" * 50,
        ".*.*a{200}",
    ],
)
def test_few_choices_can_be_too_many(pattern: str) -> None:
    with pytest.raises(ProtocolError, match="could take too long"):
        compile_pattern(pattern)


@pytest.mark.parametrize(
    ("cheap", "dear"),
    [("^.*a", ".*a"), ("a", "ab"), (".*a", ".*.*a"), ("ab.*", "a.*b"), ("ab", "a?b"), ("(aab)", "(a|b)")],
)
def test_what_a_pattern_may_cost(cheap: str, dear: str) -> None:
    assert 0 < compile_pattern(cheap).steps < compile_pattern(dear).steps <= MAX_STEPS


@pytest.mark.parametrize(
    "pattern", ["(", "[", "*", "a" * 257, "a{99999999999999999999}", "(?P<a>x)(?P<a>y)", "[[a]&&b]"]
)
def test_what_is_no_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ProtocolError, match="regular expression"):
        compile_pattern(pattern)


def test_longer_text_than_names_have_does_not_match() -> None:
    pattern = compile_pattern("a")
    assert search(pattern, "a" * MAX_TEXT)
    assert not search(pattern, "a" * (MAX_TEXT + 1))


@pytest.mark.slow
@examples(310)
@given(pattern=st.text("ab|()*+?{}[]^$.\\,12# x:=!<i", max_size=24))
def test_whatever_is_allowed_is_quick(pattern: str) -> None:
    try:
        compiled = compile_pattern(pattern)
    except ProtocolError:
        return
    start = time.perf_counter()
    search(compiled, "ab" * 60 + "c")
    assert time.perf_counter() - start < 5
