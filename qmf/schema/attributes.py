"""Single attributes of XML elements, converted and checked."""

from __future__ import annotations

import enum
import re
from typing import TypeVar

from lxml import etree

from qmf.schema.literals import parse_float, parse_integer
from qmf.schema.report import Report, label, quote
from qmf.schema.types import TYPES, QmfType, Style

#: Names travel as str8; the longest suffix that a statistic adds has seven letters.
MAX_NAME = 255 - len("Samples")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_FLAGS = {"y": True, "true": True, "1": True, "n": False, "false": False, "0": False}

_Word = TypeVar("_Word", bound=enum.Enum)


def name_of(report: Report, element: etree._Element) -> str | None:
    """The name of an element, or None where it has none, which the grammar reports."""
    name = element.get("name")
    if name is None:
        return None
    if not is_name(name):
        report.error(element, f"{label(element)}: a name is a letter followed by letters, digits and underscores")
    elif len(name) > MAX_NAME:
        report.error(element, f"{label(element)}: a name has at most {MAX_NAME} characters")
    return name


def is_name(text: str) -> bool:
    """True for a letter followed by letters, digits and underscores, all ASCII."""
    return _NAME.fullmatch(text) is not None


def flag(report: Report, element: etree._Element, attribute: str) -> bool:
    """A yes-or-no attribute; no where it is missing."""
    text = element.get(attribute)
    if text is None:
        return False
    value = _FLAGS.get(text)
    if value is None:
        report.error(element, f"{label(element)}: {attribute} must be y or n (or true, false, 1, 0), not {quote(text)}")
    return value or False


def word(report: Report, element: etree._Element, attribute: str, words: dict[str, _Word], default: _Word) -> _Word:
    """An attribute that takes one of a few words."""
    text = element.get(attribute)
    if text is None:
        return default
    value = words.get(text)
    if value is None:
        known = ", ".join(words)
        hint = report.hint(text, words)
        report.error(element, f"{label(element)}: {attribute} must be one of {known}, not {quote(text)}{hint}")
    return default if value is None else value


def type_of(report: Report, element: etree._Element, *, direct: bool) -> QmfType | None:
    """The type of a property, statistic or argument, or None where it is missing or wrong.

    Args:
        direct: only types with a direct accessor are allowed.
    """
    text = element.get("type")
    if text is None:
        return None
    type = TYPES.get(text)
    if type is None:
        known = [name for name, item in TYPES.items() if not direct or item.style is Style.DIRECT]
        report.error(element, f"{label(element)}: unknown type {quote(text)}{report.hint(text, known)}")
        return None
    if direct and type.style is not Style.DIRECT:
        report.error(element, f"{label(element)}: type {quote(text)} is for statistics only")
        return None
    return type


def bound(report: Report, element: etree._Element, attribute: str, type: QmfType) -> int | float | None:
    """`min` or `max` of a property, statistic or argument of a given type; None where it is missing or wrong."""
    text = element.get(attribute)
    if text is None:
        return None
    if not type.is_integer and type.name not in ("float", "double"):
        report.error(element, f"{label(element)}: {attribute} is for numbers only, not for {type.name}")
        return None
    try:
        value = parse_integer(text) if type.is_integer else parse_float(text)
    except ValueError as error:
        report.error(element, f"{label(element)}: {attribute} is {quote(text)}, {error}")
        return None
    if type.minimum is not None and type.maximum is not None and not type.minimum <= value <= type.maximum:
        range_ = f"{type.minimum} to {type.maximum}"
        report.error(element, f"{label(element)}: {attribute} {value} is outside the range of {type.name}, {range_}")
        return None
    if value != value:
        report.error(element, f"{label(element)}: {attribute} must be a number that others can be compared with")
        return None
    return value


def max_len(report: Report, element: etree._Element, type: QmfType) -> int | None:
    """`maxLen` or `maxlen`, both spellings being in use; None where it is missing or wrong."""
    text = element.get("maxLen", element.get("maxlen"))
    if text is None:
        return None
    if "maxLen" in element.attrib and "maxlen" in element.attrib:
        report.error(element, f"{label(element)}: maxLen and maxlen are the same attribute; give one")
        return None
    if type.max_bytes is None:
        report.error(element, f"{label(element)}: maxLen is for strings only, not for {type.name}")
        return None
    try:
        value = parse_integer(text)
    except ValueError as error:
        report.error(element, f"{label(element)}: maxLen is {quote(text)}, {error}")
        return None
    if not 1 <= value <= type.max_bytes:
        report.error(element, f"{label(element)}: maxLen must be 1 to {type.max_bytes} for {type.name}, not {value}")
        return None
    return value
