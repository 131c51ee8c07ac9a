"""Hashes, computed by hand from the bytes that they cover (QMF2.md 5.4)."""

from __future__ import annotations

import hashlib
from uuid import UUID

from qmf.schema import Schema, parse_schema


def digest(*parts: bytes) -> bytes:
    return hashlib.md5(b"".join(parts)).digest()


def read(inner: str) -> Schema:
    return parse_schema(f'<schema package="p">{inner}</schema>'.encode(), "f")


def test_a_class_hashes_names_and_values_in_document_order() -> None:
    inner = '<class desc="Größe" name="A">text<!-- comment --><property type="bool" name="p"/></class>'
    expected = digest("classdescGrößenameApropertytypeboolnamep".encode())
    assert read(inner).classes[0].hash == UUID(bytes=expected)


def test_the_package_is_not_part_of_it() -> None:
    inner = '<class name="A"/>'
    other = parse_schema(f'<schema package="q">{inner}</schema>'.encode(), "f")
    assert other.classes[0].hash == read(inner).classes[0].hash


def test_an_event_adds_the_digests_of_its_arguments_in_the_order_of_args() -> None:
    inner = (
        '<eventArguments><arg name="a" type="bool"/><arg name="b" type="sstr"/></eventArguments>'
        '<event name="e" args="b, a"/>'
    )
    expected = digest(b"eventnameeargsb, a", digest(b"argnamebtypesstr"), digest(b"argnameatypebool"))
    assert read(inner).events[0].hash == UUID(bytes=expected)


def test_a_class_adds_the_digests_of_its_groups_after_all_of_itself() -> None:
    inner = (
        '<class name="A"><group name="g"/><property name="p" type="bool"/><group use="h"/></class>'
        '<group name="g"><property name="q" type="bool"/></group>'
        '<group name="h"><group use="i"/></group><group name="i"/>'
    )
    g = digest(b"groupnamegpropertynameqtypebool")
    h = digest(b"groupnamehgroupusei", digest(b"groupnamei"))
    expected = digest(b"classnameAgroupnamegpropertynameptypeboolgroupuseh", g, h)
    assert read(inner).classes[0].hash == UUID(bytes=expected)
