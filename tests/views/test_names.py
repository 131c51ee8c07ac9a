"""How objects are called."""

from __future__ import annotations

import pytest
from shell.fakes import FILESYSTEM, PROCESS

from qmf.schema import TYPES, ClassSchema, Property
from qmf.views.names import index_text, title_text


@pytest.mark.parametrize(
    ("name", "schema", "values", "index"),
    [
        ("org.example:filesystem:/home", FILESYSTEM, {}, "/home"),
        ("org.example:filesystem:a:b", FILESYSTEM, {}, "a:b"),
        ("org.example:filesystem:org.example:disk:sda,org.example:a:b,/x", FILESYSTEM, {}, "sda,b,/x"),
        ("org.example:filesystem:org.example:disk:", FILESYSTEM, {}, "org.example:disk:"),
        ("widget-3", FILESYSTEM, {"mountPoint": "/x"}, "/x"),
        ("widget-3", FILESYSTEM, {}, "widget-3"),
        ("widget-3", PROCESS, {"pid": 7}, "7"),
        ("org.example:filesystem:org.example:disk:org.example:host:alpha,/,/x", FILESYSTEM, {}, "alpha,/,/x"),
        ("org.example:filesystem:", FILESYSTEM, {"mountPoint": "/x"}, ""),
        ("other:filesystem:/x", FILESYSTEM, {}, "other:filesystem:/x"),
    ],
)
def test_index(name: str, schema: ClassSchema, values: dict[str, object], index: str) -> None:
    assert index_text(name, schema, values) == index


def test_title_is_a_name_that_is_no_key() -> None:
    def schema(index: bool) -> ClassSchema:
        return ClassSchema(package="p", name="c", properties=(Property(name="name", type=TYPES["sstr"], index=index),))

    assert title_text(schema(False), {"name": "init"}) == "init"
    assert title_text(schema(True), {"name": "eth0"}) == ""
    assert title_text(PROCESS, {"name": "x"}) == ""
