"""The schema itself in canonical XML: groups resolved, attributes in one order, every value in one spelling."""

from __future__ import annotations

from qmf.schema import Schema, to_xml
from qmf_codegen import headers


def document(schema: Schema, source: str) -> str:
    """The XML of a schema from file `source`."""
    return f"{headers.markup(source)}\n{to_xml(schema)}"
