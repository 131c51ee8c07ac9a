"""The words of templates: text, expressions, types, descriptions, imports."""

from __future__ import annotations

import ast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_codegen.checking import check
from qmf_codegen.errors import CodegenError
from qmf_codegen.filters.describe import facts
from qmf_codegen.filters.layout import Code, Text, call, columns, flat, lay_out, string, tuple_of
from qmf_codegen.filters.literals import is_short, literal
from qmf_codegen.filters.text import LINE, comment, docstring, escape, sentence, width, wrap
from qmf_codegen.filters.types import descriptor, value
from qmf_codegen.filters.types import given as given_type
from qmf_codegen.imports import AGENT, SCHEMA, exports, import_lines
from support.schemas import TEXTS

from qmf.schema import TYPES, Access, Argument, Property, Reference, Statistic


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a word", "a word."),
        ("Stops here.", "Stops here."),
        ("  two \n lines ", "two lines."),
        ("really?", "really?"),
        ('say "no"', 'say "no".'),
        ("", ""),
        (" \t", ""),
    ],
)
def test_sentences(text: str, expected: str) -> None:
    assert sentence(text) == expected


def test_wrapping_keeps_within_the_line_and_hangs() -> None:
    lines = wrap("word " * 60, 8, first="name:", hanging=4).split("\n")
    assert lines[0].startswith("name: word")
    assert all(line.startswith(" " * 12 + "word") for line in lines[1:])
    assert all(len(" " * 8 + line if number == 0 else line) <= LINE for number, line in enumerate(lines))
    assert len(lines) > 2


def test_a_long_word_gets_its_own_line() -> None:
    assert wrap(f"a {'w' * 200} b", 4) == f"a\n    {'w' * 200}\n    b"


def test_wide_characters_count_double() -> None:
    assert width("長a") == 3
    assert all(width(line) <= LINE for line in wrap("長長長 " * 50, 0).split("\n"))


@given(text=TEXTS)
def test_docstrings_hold_their_text(text: str) -> None:
    doc = docstring([wrap(escape(sentence(text)), 4, room=6)], 4)
    assert " ".join(str(ast.literal_eval(doc)).split()) == " ".join(sentence(text).split())


@given(text=TEXTS)
def test_comments_stay_comments(text: str) -> None:
    assert ast.parse(f"# {comment(text)}\n").body == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", '"plain"'),
        ("it's", '"it\'s"'),
        ('say "x"', "'say \"x\"'"),
        ("'\"", '"\'\\""'),
        ("\\\n\t", '"\\\\\\n\\t"'),
        ("\x00\x85\u200b", '"\\x00\\x85\\u200b"'),
        ("Größe 長", '"Größe 長"'),
        ("e\u0301", '"e\\u0301"'),
    ],
)
def test_string_literals(text: str, expected: str) -> None:
    assert string(text) == expected
    assert ast.literal_eval(expected) == text


@given(text=TEXTS, indent=st.sampled_from([0, 4, 8, 40]))
def test_strings_survive_any_layout_within_the_line(text: str, indent: int) -> None:
    code = lay_out(call("f", x=Text(text)), indent, before=indent)
    tree = ast.parse(code, mode="eval").body
    assert isinstance(tree, ast.Call)
    assert ast.literal_eval(tree.keywords[0].value) == text
    assert all(columns(line) <= LINE for line in code.split("\n"))


def test_an_expression_that_fits_stays_on_its_line() -> None:
    node = call("f", Code("1"), items=tuple_of(Code("a")), name=Text("x"))
    assert flat(node) == 'f(1, items=(a,), name="x")'
    assert lay_out(node) == flat(node)
    assert lay_out(node, before=LINE - len(flat(node))) == flat(node)


def test_an_expression_that_does_not_fit_gets_a_line_per_part() -> None:
    node = call("f", Code("1"), name=Text("x"))
    assert lay_out(node, 4, before=LINE - len(flat(node)) + 1) == 'f(\n        1,\n        name="x",\n    )'
    assert lay_out(node, explode=True) == 'f(\n    1,\n    name="x",\n)'


def test_long_strings_are_cut_behind_spaces() -> None:
    code = lay_out(Text("word " * 40))
    first = code.split("\n")[1]
    assert first == '    "' + "word " * 22 + '"'


@pytest.mark.parametrize(
    ("type_name", "default", "expected", "short"),
    [
        ("uint8", 7, "7", True),
        ("bool", True, "True", True),
        ("double", 1e16, "1e16", True),
        ("double", float("-inf"), 'float("-inf")', False),
        ("sstr", "x", '"x"', True),
        ("lstr", "x" * 50, '"' + "x" * 50 + '"', False),
        ("uuid", UUID(int=0), 'UUID("00000000-0000-0000-0000-000000000000")', False),
        ("map", {}, "{}", False),
        ("list", [1, "a"], 'parse_value(TYPES["list"], \'[1, "a"]\')', False),
    ],
)
def test_defaults(type_name: str, default: object, expected: str, short: bool) -> None:
    assert flat(literal(default, TYPES[type_name])) == expected
    assert is_short(default) is short


def test_no_default_has_another_type() -> None:
    with pytest.raises(TypeError):
        literal(object(), TYPES["objId"])
    assert not is_short(None)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Property(name="p", type=TYPES["sstr"]), "Attribute[str]"),
        (Property(name="p", type=TYPES["uint8"], optional=True), "Attribute[int | None]"),
        (Property(name="p", type=TYPES["map"]), "Attribute[Mapping[str, object]]"),
        (Property(name="p", type=TYPES["objId"], optional=True), "ReferenceAttribute"),
        (Statistic(name="s", type=TYPES["uuid"]), "Attribute[UUID]"),
        (Statistic(name="s", type=TYPES["count8"]), "CounterAttribute"),
        (Statistic(name="s", type=TYPES["hilo8"]), "HiLoAttribute"),
        (Statistic(name="s", type=TYPES["mmaTime"]), "MmaAttribute"),
    ],
)
def test_descriptors(item: Property | Statistic, expected: str) -> None:
    assert descriptor(item) == expected


def test_types_of_values() -> None:
    assert value(TYPES["objId"]) == "ObjectId | None"
    assert value(TYPES["sstr"], optional=True) == "str | None"
    assert value(TYPES["count64"]) == "int"
    assert given_type(Argument(name="a", type=TYPES["objId"])) == "Ref"
    assert given_type(Argument(name="a", type=TYPES["list"])) == "Sequence[object]"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Property(name="p", type=TYPES["bool"]), "bool, RO"),
        (
            Property(
                name="p", type=TYPES["uint8"], access=Access.RW, unit="percent", minimum=1, maximum=100, index=True
            ),
            "uint8, percent, 1 to 100, RW, index",
        ),
        (Property(name="p", type=TYPES["sstr"], max_len=9, optional=True), "sstr, at most 9 bytes, RO, optional"),
        (
            Property(name="p", type=TYPES["objId"], parent_ref=True, references=Reference("org.x", "Y")),
            "objId, RO, names the parent, refers to org.x:Y",
        ),
        (Property(name="p", type=TYPES["objId"], general_reference=True), "objId, RO, refers to any class"),
        (Statistic(name="s", type=TYPES["count64"], assign="a -  b", minimum=2), "count64, at least 2, equals a - b"),
        (Argument(name="a", type=TYPES["double"], maximum=2.5, default=1.0), "double, at most 2.5, default 1.0"),
        (Argument(name="a", type=TYPES["map"], default={"a": 1}), "map"),
    ],
)
def test_facts(item: Property | Statistic | Argument, expected: str) -> None:
    assert facts(item) == expected


def test_imports_are_those_that_the_body_uses() -> None:
    body = '@attrs.frozen\nclass A(Event):\n    """UUID and Mapping."""\n    x: ClassVar[UUID] = schema.A\n'
    assert import_lines(body, AGENT).split("\n") == [
        "from typing import ClassVar",
        "from uuid import UUID",
        "",
        "import attrs",
        "",
        "from qmf.agent import Event",
        "",
        "from . import schema",
    ]
    assert import_lines("A = Schema()\n", SCHEMA) == "from qmf.schema import Schema"
    assert import_lines("A = 1\n", SCHEMA) == ""


def test_exports_are_sorted_like_the_linter_wants() -> None:
    assert (
        exports(["Queue", "A10", "A9", "Zoo", "QUEUE", "A"]) == '__all__ = ["A9", "A10", "QUEUE", "A", "Queue", "Zoo"]'
    )
    assert exports([]) == "__all__: list[str] = []"


@pytest.mark.parametrize("text", ["x = (\n", "x = 1", "x = 1\n\n", "x = 1 \n", "x = '\0'\n"])
def test_bad_modules_are_not_let_through(text: str) -> None:
    with pytest.raises(CodegenError, match=r"^the generator .*m\.py"):
        check("m.py", text)
