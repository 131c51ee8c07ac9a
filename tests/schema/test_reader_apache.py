"""Apache's own schema files: they read without error, and hash to what a real broker sends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from support.schemas import APACHE, SHIPPED, VECTORS

from qmf.errors import SchemaProblem
from qmf.schema import ClassKey, Kind, Schema, read_schema

pytestmark = pytest.mark.skipif(not APACHE.is_dir(), reason="Apache's schemas and the captured messages are not there")

FILES = {
    "apache-acl.xml": ("org.apache.qpid.acl", 1, 6),
    "apache-broker.xml": ("org.apache.qpid.broker", 20, 18),
    "apache-ha.xml": ("org.apache.qpid.ha", 1, 1),
    "apache-legacystore.xml": ("org.apache.qpid.legacystore", 2, 4),
    "apache-linearstore.xml": ("org.apache.qpid.linearstore", 2, 0),
}


def read(name: str) -> tuple[Schema, list[SchemaProblem]]:
    warnings: list[SchemaProblem] = []
    return read_schema(APACHE / name, warnings.append), warnings


@pytest.mark.parametrize("name", FILES)
def test_the_files_read_without_error(name: str) -> None:
    package, classes, events = FILES[name]
    schema, warnings = read(name)
    assert (schema.package, len(schema.classes), len(schema.events)) == (package, classes, events)
    # The broker's events use counter types; nothing else is odd.
    assert len(warnings) == (2 if name == "apache-broker.xml" else 0)


def test_there_is_no_other_file() -> None:
    assert {path.name for path in APACHE.glob("*.xml")} == set(FILES)


def sent_by_qpidd() -> Iterator[ClassKey]:
    """Every class key with a hash in the messages of a real qpidd."""
    for path in sorted(VECTORS.glob("*.json")):
        vector = json.loads(path.read_text())
        if isinstance(vector, dict) and str(vector.get("sender", "")).startswith("qpidd"):
            vector.pop("sections", None)  # the same again, with the types of the encoding
            yield from class_keys(vector)


def class_keys(value: object) -> Iterator[ClassKey]:
    if isinstance(value, list):
        for item in value:
            yield from class_keys(item)
    elif isinstance(value, dict):
        if "_hash" in value:
            kind = Kind(value["_type"])
            yield ClassKey(value["_package_name"], value["_class_name"], kind, UUID(value["_hash"]))
        elif "hash" in value and "class" in value:
            # QMFv1 objects and events do not say which they are, but events are written in their own way.
            is_event = value.get("kind") == 2 or "severity" in value
            yield ClassKey(value["package"], value["class"], Kind.EVENT if is_event else Kind.DATA, UUID(value["hash"]))
        for item in value.values():
            yield from class_keys(item)


def test_hashes_are_those_of_a_real_broker() -> None:
    defined = {
        (item.key.package, item.key.name, item.key.kind): item.key.hash for name in FILES for item in read(name)[0]
    }
    sent = {
        (key.package, key.name, key.kind): key.hash
        for key in sent_by_qpidd()
        if (key.package, key.name, key.kind) in defined
    }
    assert len(sent) >= 25
    assert sent == {key: defined[key] for key in sent}


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.xml")), ids=lambda path: path.name)
def test_shipped_schemas_read_without_needless_warning(path: Path) -> None:
    warnings: list[SchemaProblem] = []
    assert list(read_schema(path, warnings.append))
    # The events of the broker's model use counter types, and ours is as Apache's.
    assert [item.message for item in warnings] == (
        [f"arg '{name}': type count64 is for statistics; sent as uint64" for name in ("msgDepth", "byteDepth")]
        if path.name == "broker.xml"
        else []
    )
