"""Addresses are taken apart as the published grammar says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.messaging.addresses.parser import MAX_DEPTH, ParsedAddress, parse
from qmf.messaging.exceptions import MalformedAddress


@pytest.mark.parametrize(
    ("text", "name", "subject", "options"),
    [
        ("hello-world", "hello-world", None, {}),
        ("topic-exchange/*.news", "topic-exchange", "*.news", {}),
        ("topic-exchange/#.news", "topic-exchange", "#.news", {}),
        ("a/b/c", "a", "b/c", {}),
        ("a/", "a", None, {}),
        ("#", "#", None, {}),
        ("<null>", "<null>", None, {}),
        ("'a/b; {}'/'c d'", "a/b; {}", "c d", {}),
        (r"a\/b\ c", "a/b c", None, {}),
        (r"a\x41\u00e4", "aAä", None, {}),
        (" a.b ", "a.b", None, {}),
        (" only  one / an other.# ; {a:1}", "only  one", "an other.#", {"a": 1}),
        ("'c d' e/ f \n", "c d e", "f", {}),
        ("xoxox ; {create: always}", "xoxox", None, {"create": "always"}),
        ("q;{}", "q", None, {}),
        ("q;{a:1,b:-2.5,c:+3,d:.5}", "q", None, {"a": 1, "b": -2.5, "c": 3, "d": 0.5}),
        (
            "q;{a:True,b:true,c:False,d:false,e:None}",
            "q",
            None,
            {"a": True, "b": True, "c": False, "d": False, "e": None},
        ),
        ("q;{a:'True',b:\"it's\",c:'x\\n\\'\\q'}", "q", None, {"a": "True", "b": "it's", "c": "x\n'\\q"}),
        ("q;{a:[1,[x,'y'],{z:{}}],}", "q", None, {"a": [1, ["x", "y"], {"z": {}}]}),
        (
            r"q;{exchange: amq.topic, key: a.#/b\ c, qpid.max_count: 5, v: 1.2.3}",
            "q",
            None,
            {"exchange": "amq.topic", "key": "a.#/b c", "qpid.max_count": 5, "v": "1.2.3"},
        ),
        ("q;{x-declare:{'qpid.max_count':5},1:2}", "q", None, {"x-declare": {"qpid.max_count": 5}, "1": 2}),
    ],
)
def test_addresses(text: str, name: str, subject: str | None, options: dict[str, object]) -> None:
    parsed = parse(text)
    assert (parsed.name, parsed.subject, parsed.options or {}) == (name, subject, options)


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("", "line:1,0:", "unexpected token EOF, the name is missing"),
        ("  /x", "line:1,2:  /x", "unexpected token SLASH('/'), the name is missing"),
        ("q; create", "line:1,3:q; create", "expecting LBRACE, got ID('create')"),
        ("q; {create always}", "line:1,11:q; {create always}", "expecting COLON, got ID('always')"),
        ("q; {a: 1 b: 2}", "line:1,9:", "expecting (COMMA, RBRACE), got ID('b')"),
        ("q; {a: 1, a: 2}", "line:1,10:", "'a' is given twice"),
        ("q; {a: [1}", "line:1,9:", "expecting (COMMA, RBRACK), got RBRACE('}')"),
        ("q;\n{a: 1,\n b: ;}", "line:3,4: b: ;}", "expecting (NUMBER, STRING, ID, LBRACE, LBRACK), got SEMI(';')"),
        ("q; {a: 1} x", "line:1,10:", "expecting EOF, got ID('x')"),
        ("q; {a: ", "line:1,7:", "got EOF"),
        ("a~b", "line:1,1:a~b", "unrecognized characters ('~' must be inside of quotes)"),
        ("q; {a: 'x}", "line:1,7:", "unrecognized characters (the string that starts with ' does not end)"),
        (r"a\xg", "line:1,1:", "unrecognized characters (an escape is a backslash with one character"),
        ("q;" + "{a:" * (MAX_DEPTH + 2), f"line:1,{3 * (MAX_DEPTH + 2) - 1}:", f"more than {MAX_DEPTH} deep"),
    ],
)
def test_faults_name_line_and_column(text: str, place: str, reason: str) -> None:
    with pytest.raises(MalformedAddress) as caught:
        parse(text)
    assert place in str(caught.value)
    assert reason in str(caught.value)


@given(st.text())
def test_any_text_is_an_address_or_malformed(text: str) -> None:
    try:
        parsed = parse(text)
    except MalformedAddress:
        return
    assert parsed.name


def written(value: object) -> str:
    """A value as a program would write it in an address."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(name)}: {written(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(written, value)) + "]"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
    return str(value)


values = st.recursive(
    st.booleans() | st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(min_size=1), st.text(min_size=1), st.dictionaries(st.text(), values, max_size=4))
def test_what_is_written_in_quotes_comes_back(name: str, subject: str, options: dict[str, object]) -> None:
    text = f"{written(name)}/{written(subject)};{written(options)}"
    assert parse(text) == ParsedAddress(name, subject, options)
