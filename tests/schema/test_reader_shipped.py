"""Our own files for qpidd's packages equal Apache's except for the descriptions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs
import pytest
from support.schemas import APACHE, SHIPPED

from qmf.schema import Schema, read_schema

FILES = ["acl", "broker"]

needs_apache = pytest.mark.skipif(not APACHE.is_dir(), reason="Apache's schemas are not there")


def parts(item: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """A schema and everything in it that may have a description, by path."""
    yield path, item
    for field in ("classes", "events", "properties", "statistics", "methods", "arguments"):
        for part in getattr(item, field, ()):
            yield from parts(part, f"{path}/{field}/{part.name}")


def bare(schema: Schema) -> object:
    """A schema without descriptions, and without the hashes that depend on them."""

    def serialise(_instance: object, field: attrs.Attribute[object] | None, value: object) -> object:
        return None if field is not None and field.name in ("desc", "hash") else value

    return attrs.asdict(schema, value_serializer=serialise)


@needs_apache
@pytest.mark.parametrize("name", FILES)
def test_names_types_and_all_the_rest_are_apaches(name: str) -> None:
    ours, theirs = read_schema(SHIPPED / f"{name}.xml"), read_schema(APACHE / f"apache-{name}.xml")
    assert bare(ours) == bare(theirs)


@needs_apache
@pytest.mark.parametrize("name", FILES)
def test_no_description_is_apaches(name: str) -> None:
    ours = dict(parts(read_schema(SHIPPED / f"{name}.xml")))
    theirs = dict(parts(read_schema(APACHE / f"apache-{name}.xml")))
    used = {plain(item.desc) for item in theirs.values() if item.desc is not None}
    assert len(used) > 5
    assert {item.desc for item in ours.values() if plain(item.desc) in used and len(item.desc.split()) > 3} == set()


def plain(text: str) -> str:
    """Text without what makes no difference to a reader."""
    return " ".join(text.lower().split()).rstrip(".!")


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.xml")), ids=lambda path: path.name)
def test_everything_is_described(path: Any) -> None:
    found = dict(parts(read_schema(path)))
    assert len(found) > 20
    assert [where for where, item in found.items() if not (item.desc or "").strip()] == []


def test_the_comparison_sees_what_it_should() -> None:
    schema = read_schema(SHIPPED / "acl.xml")
    item = schema.classes[0]
    changed = attrs.evolve(item.properties[0], index=False)
    other = attrs.evolve(schema, classes=(attrs.evolve(item, properties=(changed, *item.properties[1:])),))
    assert bare(other) != bare(schema)
    assert bare(attrs.evolve(schema, desc="other")) == bare(schema)
