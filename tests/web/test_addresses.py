"""Names in the paths of URLs."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.console.aio import ObjectId
from qmf.web.addresses import from_segment, object_href, schema_href, to_segment


@given(st.text(max_size=50))
def test_every_name_comes_back_from_one_segment(name: str) -> None:
    if not any(0xD800 <= ord(char) <= 0xDFFF for char in name):
        segment = to_segment(name)
        assert re.fullmatch(r"[A-Za-z0-9._:@~-]+", segment)
        assert segment not in (".", "..")
        assert from_segment(segment) == name


@pytest.mark.parametrize(
    ("name", "segment"),
    [
        ("org.apache.qpid.broker:queue:orders", "org.apache.qpid.broker:queue:orders"),
        ("a/b c~d", "a~2Fb~20c~7Ed"),
        ("..", "~2E~2E"),
        ("", "~"),
        ("\udcff", "~FF"),
        ("é", "~C3~A9"),
    ],
)
def test_names_stay_readable(name: str, segment: str) -> None:
    assert to_segment(name) == segment
    assert from_segment(segment) == name


def test_what_was_not_coded_is_taken_as_it_is() -> None:
    assert from_segment("50%~zz") == "50%~zz"


def test_addresses_of_objects_and_schemas() -> None:
    where = object_href(ObjectId("qmf.host:filesystem:/", "vendor:product:a b"))
    assert where == "/api/v1/agents/vendor:product:a~20b/objects/qmf.host:filesystem:~2F"
    assert schema_href("p", "c") == "/api/v1/schemas/p/c"
    assert schema_href("p", "c", "1") == "/api/v1/schemas/p/c?hash=1"
