"""Lines of tables and keys in TOML."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf._toml import KeyPath, TomlSyntaxError, key_lines, line_of, parse_toml

TEXT = '''\
a = 1
[b]
"c d" = """
x = 1
[no]
"""
e.f = [
  "g = 1", # [no]
  {h = 1},
]
[[i]]
j = 1
[[i.k]]
l = 'no"'
[[i]]
[i.m]
n = 2
[[i.k]]
'''


def test_the_line_of_each_key() -> None:
    lines = key_lines(TEXT)
    assert lines == {
        ("a",): 1,
        ("b",): 2,
        ("b", "c d"): 3,
        ("b", "e"): 7,
        ("b", "e", "f"): 7,
        ("i",): 11,
        ("i", 0): 11,
        ("i", 0, "j"): 12,
        ("i", 0, "k"): 13,
        ("i", 0, "k", 0): 13,
        ("i", 0, "k", 0, "l"): 14,
        ("i", 1): 15,
        ("i", 1, "m"): 16,
        ("i", 1, "m", "n"): 17,
        ("i", 1, "k"): 18,
        ("i", 1, "k", 0): 18,
    }
    assert line_of(lines, ("b", "e", "f", 1, "h")) == 7
    assert line_of(lines, ("i", 1, "x")) == 15
    assert line_of(lines, ("z",)) is None


def test_every_syntax_error_has_its_line() -> None:
    assert parse_toml(TEXT) == tomllib.loads(TEXT)
    with pytest.raises(TomlSyntaxError) as several:
        parse_toml("a = \n[b]\nc = 1\n[d]\ne = 'x\n[f]\ng = [1\n")
    assert [line for line, _ in several.value.errors] == [1, 5, 7]
    with pytest.raises(TomlSyntaxError, match=r"line 2: Cannot declare \('a',\) twice"):
        parse_toml("[a]\n[a]\n")


NAMES = st.sampled_from(["a", "b", "c-d", "e_f"])
VALUES = st.sampled_from(["1", '"x"', '"[a]"', "'a = 1 #'", '"""\na = 1\n[b]\n"""', "[\n1,\n]", "{x = 1}", '"\\"#["'])
TABLES = st.lists(st.tuples(NAMES, st.booleans(), st.dictionaries(NAMES, VALUES, max_size=3)), max_size=5)


@given(TABLES)
def test_each_table_and_key_is_found(tables: list[tuple[str, bool, dict[str, str]]]) -> None:
    text = ""
    for name, is_array, content in tables:
        text += f"[[{name}]] # x\n" if is_array else f"[{name}]\n"
        text += "".join(f"{key} = {value} # ]\n" for key, value in content.items())
    try:
        parsed = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    lines = text.split("\n")
    found = key_lines(text)
    for path in paths(parsed):
        at = found[path]
        named = [part for part in path if isinstance(part, str)]
        assert named[-1] in lines[at - 1]
    assert list(found.values()) == sorted(found.values())


def paths(content: dict[str, Any]) -> list[KeyPath]:
    found: list[KeyPath] = []
    for name, value in content.items():
        tables = value if isinstance(value, list) and value and isinstance(value[0], dict) else [value]
        for index, table in enumerate(tables):
            path: KeyPath = (name, index) if tables is value else (name,)
            found += [path, *((*path, key) for key in table)]
    return found


@pytest.mark.parametrize("text", ["", "\n", "a"])
def test_texts_without_tables(text: str) -> None:
    assert key_lines(text) == {}
