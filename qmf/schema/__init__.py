"""The schema model: packages, classes, properties, statistics, methods and events; and reading them from XML.

Knows no wire format. The model (`model`) and its types (`types`) are plain frozen values. `reader` reads schema files
by the passes in `parsing`; `writer` writes a model as XML. `constraints` checks values, `literals` converts them from
and to text, and `documentation` composes the docstrings of generated classes.
"""

from __future__ import annotations

from qmf.schema.constraints import check_value, zero_value
from qmf.schema.literals import format_value, parse_value
from qmf.schema.model import (
    Access,
    Argument,
    ClassKey,
    ClassSchema,
    Direction,
    EventSchema,
    Kind,
    Method,
    Property,
    Reference,
    Schema,
    Severity,
    Statistic,
    StatisticEntry,
)
from qmf.schema.reader import parse_schema, read_schema
from qmf.schema.types import TYPES, TYPES_BY_CODE, QmfType, Style
from qmf.schema.writer import losses, to_xml

__all__ = [
    "TYPES",
    "TYPES_BY_CODE",
    "Access",
    "Argument",
    "ClassKey",
    "ClassSchema",
    "Direction",
    "EventSchema",
    "Kind",
    "Method",
    "Property",
    "QmfType",
    "Reference",
    "Schema",
    "Severity",
    "Statistic",
    "StatisticEntry",
    "Style",
    "check_value",
    "format_value",
    "losses",
    "parse_schema",
    "parse_value",
    "read_schema",
    "to_xml",
    "zero_value",
]
