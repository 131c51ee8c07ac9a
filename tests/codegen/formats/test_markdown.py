"""Schemas as reference pages."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from qmf_codegen import Format, generate
from qmf_codegen.formats import markdown
from qmf_codegen.python.views import fields_of
from support.schemas import SHIPPED, schemas

from qmf.schema import TYPES, Argument, ClassSchema, Method, Property, Schema


def page(schema: Schema) -> list[Any]:
    return MarkdownIt("commonmark").enable("table").parse(markdown.document(schema, "x.xml"))


def tables(schema: Schema) -> list[list[list[str]]]:
    """The text of each cell of each table, as a reader of the page sees it."""
    found: list[list[list[str]]] = []
    before = ""
    for token in page(schema):
        if token.type == "table_open":
            found.append([])
        elif token.type == "tr_open":
            found[-1].append([])
        elif token.type == "inline" and before in ("th_open", "td_open"):
            found[-1][-1].append("".join(child.content for child in token.children or ()))
        before = token.type
    return found


@pytest.mark.slow
@given(schema=schemas())
def test_any_schema_becomes_tables_that_show_every_text(schema: Schema) -> None:
    shown = [row for table in tables(schema) for row in table]
    assert all(len(row) == len(table[0]) for table in tables(schema) for row in table)
    rows = {row[0]: row for row in shown}
    for item in schema.classes:
        assert {field.name for field in fields_of(item)} <= set(rows)
    descriptions = {normalised(row[-1]) for row in shown}
    for item in schema.classes:
        assert all(normalised(field.desc) in descriptions for field in item.properties if field.desc)


def normalised(text: str | None) -> str:
    return " ".join((text or "").replace("`", "").split())


def test_the_page_shows_every_member() -> None:
    argument = Argument(name="a|b", type=TYPES["lstr"], default="x" * 60)
    item = ClassSchema(
        package="p",
        name="Thing",
        properties=(Property(name="p", type=TYPES["uint8"], desc="*bold* _x_ <b> [l](x) `code|code` | end"),),
        methods=(Method(name="m", arguments=(argument,)),),
    )
    found = tables(Schema(package="p", classes=(item,)))
    assert found == [
        [["class", "description"], ["Thing", ""]],
        [
            ["property", "type", "access", "unit", "rules", "description"],
            ["p", "uint8", "RO", "", "", "*bold* _x_ <b> [l](x) code|code | end"],
        ],
        [
            ["argument", "dir", "type", "unit", "rules", "description"],
            ["a|b", "I", "lstr", "", "default ...", ""],
        ],
    ]


def test_links_lead_to_headings() -> None:
    (file,) = generate([SHIPPED / "broker.xml"], format=Format.MARKDOWN)
    text = file.text
    assert "refers to [Vhost](#class-vhost)" in text
    assert "\n## Class Vhost\n" in text
