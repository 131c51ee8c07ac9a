"""Generated code for schemas that hypothesis invents, with unusual names, texts and bounds."""

from __future__ import annotations

import inspect
import tempfile
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from qmf_codegen.python.agent_views import is_required
from qmf_codegen.python.naming import RESERVED_IN_EVENTS, names_of, plain_names
from qmf_codegen.python.rendering import render
from qmf_codegen.python.views import fields_of
from support.generated import complaints, imported, make
from support.schemas import schemas

from qmf.schema import Access, Property, Schema

pytestmark = pytest.mark.slow


@given(schema=schemas())
def test_it_compiles(schema: Schema) -> None:
    for name, text in render(schema, "invented.xml").items():
        compile(text, name, "exec", dont_inherit=True)


@given(schema=schemas())
def test_rendering_again_gives_the_same(schema: Schema) -> None:
    assert render(schema, "a.xml") == render(schema, "a.xml")


@settings(max_examples=15)
@given(schema=schemas())
def test_the_schema_module_holds_the_schema(schema: Schema) -> None:
    with tempfile.TemporaryDirectory() as directory:
        make(schema, Path(directory), "pkg")
        with imported(Path(directory), "pkg", "schema") as (module,):
            assert schema == module.SCHEMA
            assert sorted(module.__all__) == sorted(set(module.__all__))
            held = [value for name, value in vars(module).items() if name in module.__all__]
            assert schema in held
            assert all(item in held for item in schema)


@settings(max_examples=15)
@given(schema=schemas())
def test_the_agent_module_declares_everything(schema: Schema) -> None:
    names = names_of(schema)
    with tempfile.TemporaryDirectory() as directory:
        make(schema, Path(directory), "pkg")
        with imported(Path(directory), "pkg", "schema", "agent") as (_, agent):
            for item in schema.classes:
                made = getattr(agent, names.classes[item.name])
                members = names.members[item.name]
                assert made._qmf_schema_ == item
                fields = fields_of(item)
                assert [vars(made)[members.fields[field.name]].schema_name for field in fields] == [
                    f.name for f in fields
                ]
                assert all(callable(vars(made)[members.methods[method.name]]) for method in item.methods)
            for event in schema.events:
                assert getattr(agent, names.events[event.name])._qmf_schema_ == event


@settings(max_examples=15)
@given(schema=schemas())
def test_the_console_module_declares_everything(schema: Schema) -> None:
    names = names_of(schema)
    with tempfile.TemporaryDirectory() as directory:
        make(schema, Path(directory), "pkg")
        with imported(Path(directory), "pkg", "schema", "console") as (_, console):
            for item in schema.classes:
                made = getattr(console, names.classes[item.name])
                members = names.members[item.name]
                assert made._qmf_schema_ == item
                for field in fields_of(item):
                    assert vars(made)[members.fields[field.name]].schema_name == field.name
                taken = {*members.fields.values(), *members.methods.values()}
                own = {name for name in vars(made) if not name.startswith("_")} - taken
                assert own == (_setters(own) if any(field.access is Access.RW for field in item.properties) else set())
                for method in item.methods:
                    function = vars(made)[members.methods[method.name]]
                    parameters = inspect.signature(function).parameters.values()
                    kinds = [parameter.kind for parameter in parameters]
                    given = [inspect.Parameter.POSITIONAL_OR_KEYWORD] * (1 + len(method.inputs))
                    assert kinds == [*given, inspect.Parameter.KEYWORD_ONLY]
            for event in schema.events:
                made = getattr(console, names.events[event.name])
                assert made._qmf_schema_ == event
                fields = plain_names([argument.name for argument in event.arguments], RESERVED_IN_EVENTS)
                assert {field.name for field in attrs.fields(made)} == {*fields.values(), *COMMON}


COMMON = ("agent", "object_id", "severity", "timestamp")


def _setters(own: set[str]) -> set[str]:
    """The one name of `own`, which is `set` with as many underscores as it takes."""
    assert len(own) == 1
    assert {name.rstrip("_") for name in own} == {"set"}
    return own


def test_required_properties_are_those_of_the_runtime_base() -> None:
    from qmf.agent.layout.class_layout import FieldLayout

    found: list[tuple[Property, bool]] = []

    @settings(max_examples=60)
    @given(schema=schemas())
    def compare(schema: Schema) -> None:
        for item in schema.classes:
            for field in item.properties:
                found.append((field, is_required(field)))
                assert FieldLayout(field, item.name, field.name).required == is_required(field)

    compare()
    assert {required for _, required in found} == {True, False}


def test_linter_formatter_and_type_checker_are_content(tmp_path: Path) -> None:
    count = 0

    @settings(max_examples=40)
    @given(schema=schemas())
    def collect(schema: Schema) -> None:
        nonlocal count
        make(schema, tmp_path, f"made{count}")
        count += 1

    collect()
    assert count >= 40
    assert complaints(tmp_path) == ""


def test_linter_formatter_and_type_checker_really_look(tmp_path: Path) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "module.py").write_text("import os\nx: int = 'a'\n")
    messages = complaints(tmp_path)
    assert all(part in messages for part in ("F401", "-x: int = 'a'", "Incompatible types in assignment"))
