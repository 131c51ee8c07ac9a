"""Single attributes of XML elements, converted and checked; errors are reported to a `ProblemCollector`."""

from __future__ import annotations

import enum
import re
from typing import TypeVar

from lxml import etree

from qmf.schema.literals import parse_float, parse_integer
from qmf.schema.parsing.problems import ProblemCollector, label, quote
from qmf.schema.types import TYPES, QmfType, Style

#: Longest name: a str8 on the wire, minus the longest suffix of a statistic's wire names.
MAX_NAME = 255 - len("Samples")

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_FLAGS = {"y": True, "true": True, "1": True, "n": False, "false": False, "0": False}

_Choice = TypeVar("_Choice", bound=enum.Enum)


def name_of(problems: ProblemCollector, element: etree._Element) -> str | None:
    """The name of an element; None if it has no name, which the grammar check reports."""
    name = element.get("name")
    if name is None:
        return None
    if not is_name(name):
        problems.error(element, f"{label(element)}: a name is a letter followed by letters, digits and underscores")
    elif len(name) > MAX_NAME:
        problems.error(element, f"{label(element)}: a name has at most {MAX_NAME} characters")
    return name


def is_name(text: str) -> bool:
    """True for a letter followed by letters, digits and underscores, all ASCII."""
    return _NAME.fullmatch(text) is not None


def flag(problems: ProblemCollector, element: etree._Element, attribute: str) -> bool:
    """The value of a flag; False if it is missing."""
    text = element.get(attribute)
    if text is None:
        return False
    value = _FLAGS.get(text)
    if value is None:
        problems.error(
            element, f"{label(element)}: {attribute} must be y or n (or true, false, 1, 0), not {quote(text)}"
        )
    return value or False


def choice(
    problems: ProblemCollector, element: etree._Element, attribute: str, choices: dict[str, _Choice], default: _Choice
) -> _Choice:
    """The value of an attribute with a fixed set of values."""
    text = element.get(attribute)
    if text is None:
        return default
    value = choices.get(text)
    if value is None:
        known = ", ".join(choices)
        hint = problems.hint(text, choices)
        problems.error(element, f"{label(element)}: {attribute} must be one of {known}, not {quote(text)}{hint}")
    return default if value is None else value


def type_of(problems: ProblemCollector, element: etree._Element, *, direct: bool) -> QmfType | None:
    """The type of a property, statistic or argument; None if it is missing or invalid.

    Args:
        problems: collects the errors.
        element: the element.
        direct: only types with a direct accessor are allowed.
    """
    text = element.get("type")
    if text is None:
        return None
    type = TYPES.get(text)
    if type is None:
        known = [name for name, item in TYPES.items() if not direct or item.style is Style.DIRECT]
        problems.error(element, f"{label(element)}: unknown type {quote(text)}{problems.hint(text, known)}")
        return None
    if direct and type.style is not Style.DIRECT:
        problems.error(element, f"{label(element)}: type {quote(text)} is for statistics only")
        return None
    return type


def limit(problems: ProblemCollector, element: etree._Element, attribute: str, type: QmfType) -> int | float | None:
    """`min` or `max` of a property, statistic or argument of a given type; None if it is missing or invalid."""
    text = element.get(attribute)
    if text is None:
        return None
    if not type.is_integer and type.name not in ("float", "double"):
        problems.error(element, f"{label(element)}: {attribute} is for numbers only, not for {type.name}")
        return None
    try:
        value = parse_integer(text) if type.is_integer else parse_float(text)
    except ValueError as error:
        problems.error(element, f"{label(element)}: {attribute} is {quote(text)}, {error}")
        return None
    if type.minimum is not None and type.maximum is not None and not type.minimum <= value <= type.maximum:
        range_ = f"{type.minimum} to {type.maximum}"
        problems.error(element, f"{label(element)}: {attribute} {value} is outside the range of {type.name}, {range_}")
        return None
    if value != value:
        problems.error(element, f"{label(element)}: {attribute} must not be NaN")
        return None
    return value


def max_len(problems: ProblemCollector, element: etree._Element, type: QmfType) -> int | None:
    """`maxLen` or `maxlen`, since both spellings are in use; None if it is missing or invalid."""
    text = element.get("maxLen", element.get("maxlen"))
    if text is None:
        return None
    if "maxLen" in element.attrib and "maxlen" in element.attrib:
        problems.error(element, f"{label(element)}: maxLen and maxlen are the same attribute; give one")
        return None
    if type.max_bytes is None:
        problems.error(element, f"{label(element)}: maxLen is for strings only, not for {type.name}")
        return None
    try:
        value = parse_integer(text)
    except ValueError as error:
        problems.error(element, f"{label(element)}: maxLen is {quote(text)}, {error}")
        return None
    if not 1 <= value <= type.max_bytes:
        problems.error(element, f"{label(element)}: maxLen must be 1 to {type.max_bytes} for {type.name}, not {value}")
        return None
    return value
