"""Documents made of schemas: canonical XML, JSON Schema, and the reference page."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from markdown_it import MarkdownIt
from qmf_codegen import Format, generate
from qmf_codegen.cli import main
from qmf_codegen.formats import json_schema, markdown
from qmf_codegen.views import fields_of
from support.schemas import APACHE, SHIPPED, schemas, without_hashes

from qmf.schema import (
    TYPES,
    Argument,
    ClassSchema,
    EventSchema,
    Method,
    Property,
    Schema,
    Statistic,
    parse_schema,
    read_schema,
)

GOLDEN = Path(__file__).parent / "golden" / "pump-station.xml"
PATHS = [*sorted(SHIPPED.glob("*.xml")), *sorted(APACHE.glob("*.xml")), GOLDEN]
RELAXED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
NAMES = {Format.XML: "pump-station.xml", Format.JSON_SCHEMA: "pump-station.json", Format.MARKDOWN: "pump-station.md"}


def made(format: Format, path: Path = GOLDEN) -> str:
    (file,) = generate([path], format=format)
    return file.text


@pytest.mark.parametrize("format", NAMES, ids=lambda item: item.value)
def test_documents_are_as_kept(format: Format) -> None:
    """After a wanted change: ``qmf-codegen golden/pump-station.xml --format ... -o documents``, here."""
    kept = Path(__file__).parent / "documents" / NAMES[format]
    assert made(format) == kept.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_xml_reads_back(path: Path) -> None:
    schema = read_schema(path)
    assert without_hashes(parse_schema(made(Format.XML, path).encode(), "x.xml")) == without_hashes(schema)


# -- JSON Schema


def definitions(schema: Schema) -> dict[str, Any]:
    found = json.loads(json_schema.document(schema, "x.xml"))["$defs"]
    assert isinstance(found, dict)
    return found


def one(*, statistics: tuple[Statistic, ...] = (), properties: tuple[Property, ...] = ()) -> dict[str, Any]:
    item = ClassSchema(package="p", name="C", properties=properties, statistics=statistics)
    found = definitions(Schema(package="p", classes=(item,)))["C"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("type_name", "expected"),
    [
        ("uint8", {"type": "integer", "minimum": 0, "maximum": 255}),
        ("int64", {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}),
        ("absTime", {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}),
        ("bool", {"type": "boolean"}),
        ("float", {"type": "number"}),
        ("sstr", {"type": "string", "maxLength": 255, "x-qmf-max-octets": 255}),
        ("uuid", {"type": "string", "format": "uuid"}),
        ("map", {"type": "object"}),
        ("list", {"type": "array"}),
        ("objId", {"$ref": "#/$defs/_ObjectId"}),
    ],
)
def test_types(type_name: str, expected: dict[str, object]) -> None:
    found = one(properties=(Property(name="x", type=TYPES[type_name], optional=True),))["properties"]["x"]
    annotations = {"x-qmf-type": type_name, "x-qmf-access": "RO", "x-qmf-optional": True}
    assert found == expected | annotations


def test_bounds_and_annotations() -> None:
    number = Property(name="n", type=TYPES["uint8"], minimum=3, unit="octet", desc="A number", index=True)
    text = Property(name="t", type=TYPES["sstr"], max_len=5)
    ratio = Property(name="r", type=TYPES["double"], minimum=0.5, maximum=float("inf"))
    found = one(properties=(number, text, ratio))
    assert found["required"] == ["n", "t", "r"]
    assert found["properties"]["n"] == {
        "type": "integer",
        "minimum": 3,
        "maximum": 255,
        "description": "A number",
        "x-qmf-type": "uint8",
        "x-qmf-unit": "octet",
        "x-qmf-access": "RO",
        "x-qmf-index": True,
    }
    assert found["properties"]["t"]["maxLength"] == 5
    assert (found["properties"]["r"]["minimum"], "maximum" in found["properties"]["r"]) == (0.5, False)


def test_statistics_are_there_by_their_wire_names() -> None:
    found = one(statistics=(Statistic(name="h", type=TYPES["hilo8"]), Statistic(name="m", type=TYPES["mmaTime"])))
    values = found["properties"]
    assert list(values) == ["h", "hHigh", "hLow", "mCount", "mMin", "mMax", "mAvg"]
    assert values["hHigh"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 255,
        "x-qmf-type": "hilo8",
        "x-qmf-statistic": "h",
    }
    assert {values[name]["x-qmf-type"] for name in ("mCount", "mMin", "mMax", "mAvg")} == {"mmaTime"}
    assert "required" not in found


def test_methods_and_events() -> None:
    found = json.loads(made(Format.JSON_SCHEMA))["$defs"]
    start = found["pump"]["x-qmf-methods"]["start"]
    assert list(start["inputs"]["properties"]) == ["speed"]
    assert start["inputs"]["properties"]["speed"]["default"] == 1500
    assert "required" not in start["inputs"]
    assert start["outputs"]["required"] == ["reached"]
    assert found["overPressure"]["x-qmf-severity"] == "crit"
    assert found["overPressure"]["required"] == ["pump", "pressure"]


def test_an_event_named_like_a_class() -> None:
    schema = Schema(
        package="p",
        classes=(ClassSchema(package="p", name="x"),),
        events=(EventSchema(package="p", name="x"), EventSchema(package="p", name="xEvent")),
    )
    assert list(definitions(schema)) == ["x", "xEvent", "xEventEvent", "_ObjectId"]


@pytest.mark.slow
@RELAXED
@given(schema=schemas())
def test_any_schema_becomes_json_that_names_everything(schema: Schema) -> None:
    found = definitions(schema)
    assert len(found) == len(list(schema)) + 1
    for item in schema.classes:
        names = {field.name for field in item.properties}
        names |= {entry.name for statistic in item.statistics for entry in statistic.entries}
        assert set(found[item.name]["properties"]) == names
        assert found[item.name]["description" if item.desc is not None else "title"] == (
            item.name if item.desc is None else item.desc
        )


# -- Markdown


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
@RELAXED
@given(schema=schemas())
def test_any_schema_becomes_tables_that_show_every_text(schema: Schema) -> None:
    shown = [row for table in tables(schema) for row in table]
    assert all(len(row) == len(table[0]) for table in tables(schema) for row in table)
    rows = {row[0]: row for row in shown}
    for item in schema.classes:
        assert {field.name for field in fields_of(item)} <= set(rows)
    descriptions = {words(row[-1]) for row in shown}
    for item in schema.classes:
        assert all(words(field.desc) in descriptions for field in item.properties if field.desc)


def words(text: str | None) -> str:
    return " ".join((text or "").replace("`", "").split())


def test_the_page_says_what_there_is() -> None:
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
    text = made(Format.MARKDOWN, SHIPPED / "broker.xml")
    assert "refers to [Vhost](#class-vhost)" in text
    assert "\n## Class Vhost\n" in text


# -- the command line


@pytest.mark.parametrize("format", NAMES, ids=lambda item: item.value)
def test_documents_are_written_checked_and_left_alone(
    format: Format, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / NAMES[format]
    arguments = [str(GOLDEN), "--format", format.value, "-o", str(tmp_path)]
    (tmp_path / "other.py").write_text("# Generated by qmf-codegen from other.xml.\n")
    assert main(arguments) == 0
    assert capsys.readouterr().out == f"wrote {path}\n"
    assert path.read_text() == made(format)
    assert (tmp_path / "other.py").exists()
    assert main([*arguments, "--check"]) == 0
    path.write_text(path.read_text() + "\n")
    assert main([*arguments, "--check"]) == 1
    assert main(arguments) == 0
    path.write_text("mine")
    assert main(arguments) == 2
    assert f"{path} is in the way" in capsys.readouterr().err


@pytest.mark.parametrize("format", NAMES, ids=lambda item: item.value)
def test_one_document_goes_to_the_standard_output(format: Format, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(GOLDEN), "--format", format.value, "-o", "-"]) == 0
    assert capsys.readouterr() == (made(format), "")


def test_two_documents_on_the_standard_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(GOLDEN), str(SHIPPED / "acl.xml"), "--format", "xml", "-o", "-"]) == 2
    assert capsys.readouterr() == ("", "qmf-codegen: -o - takes one schema file\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["x.xml", "-o", "-"], "-o - is for a document"),
        (["x.xml", "-o", "-", "--format", "xml", "--check"], "-o - is for a document"),
        (["x.xml", "--from-agent", "a"], "neither schema files nor --check"),
        (["--from-agent", "a", "--check"], "neither schema files nor --check"),
        (["--from-agent", "a", "--format", "markdown"], "--from-agent writes XML"),
        (["--from-agent", "a", "--timeout", "never"], "'never' is no number of seconds"),
        (["x.xml", "--format", "yaml"], "invalid choice"),
        ([], "name a schema file"),
    ],
)
def test_options_that_do_not_go_together(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    assert message in capsys.readouterr().err


def test_two_files_for_one_document(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / GOLDEN.name
    other.write_bytes(GOLDEN.read_bytes())
    assert main([str(GOLDEN), str(other), "--format", "xml", "-o", str(tmp_path / "out")]) == 2
    assert "would both become file 'pump-station.xml'" in capsys.readouterr().err


def test_a_schema_beside_its_output_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / GOLDEN.name
    path.write_bytes(GOLDEN.read_bytes())
    assert main([str(path), "--format", "xml", "-o", str(tmp_path)]) == 2
    assert path.read_bytes() == GOLDEN.read_bytes()
    assert "in the way" in capsys.readouterr().err
