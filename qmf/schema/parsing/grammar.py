"""The structure check: elements and attributes must be those of the grammar that ships with this package.

The grammar is an XML Schema (`grammar.xsd`) rather than RELAX NG: libxml2 then reports which attribute is missing or
unknown, where its RELAX NG validator only reports an unexpected element, and it finds more than one fault at a time.
After an unexpected element it skips the siblings, so unexpected elements are removed from a copy, which is validated
again until no new faults appear.

Bad values are reported by the rules, whose messages are clearer; the grammar's messages are only used for elements
without other faults, see `report_values`.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from typing import Protocol, cast

from lxml import etree

from qmf.schema.parsing.element_paths import ElementPaths
from qmf.schema.parsing.problems import ProblemCollector, label, quote

#: Largest number of passes; each removes all elements of at least one (parent, name) pair.
MAX_PASSES = 25


class _Entry(Protocol):
    """One error of libxml2; the stubs of lxml lack the path."""

    message: str
    type_name: str
    path: str | None


_XS = {"xs": "http://www.w3.org/2001/XMLSchema"}
_XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
_ATTRIBUTE = re.compile(r"attribute '([^']*)'")
_REQUIRED = re.compile(r"The attribute '([^']*)' is required")


def check_structure(problems: ProblemCollector) -> bool:
    """ProblemCollector every unexpected or missing element and attribute.

    Returns:
        False if the root element is not `schema`, so that the rules cannot be checked.
    """
    original = problems.document.root
    if original.tag != "schema":
        problems.error(original, f"the root element is {quote(original.tag)}, not 'schema'")
        return False
    for element in original.iter("*"):
        for attribute in map(str, element.attrib):
            # Validators accept these attributes, and some act on them.
            if attribute.startswith(_XSI):
                problems.error(element, f"{label(element)}: unknown attribute {quote(attribute)}")
    root = copy.deepcopy(original)
    originals = dict(zip(root.iter("*"), original.iter("*"), strict=True))
    for _ in range(MAX_PASSES):
        unexpected = _one_pass(root, originals, problems)
        if not unexpected:
            return True
        for element in unexpected:
            parent = element.getparent()
            if parent is not None:
                parent.remove(element)
    problems.error(original, "too many unexpected elements; stopped looking for more")
    return True


def report_values(problems: ProblemCollector) -> None:
    """ProblemCollector bad attribute values of elements for which nothing was reported so far.

    The rules check every such value, so this reports something only if grammar and rules disagree.
    """
    root = problems.document.root
    paths = ElementPaths(root)
    for entry in _errors(root):
        element = paths.element(entry.path)
        if not problems.is_faulty(element):
            problems.error(element, f"{label(element)}: {entry.message}")


def _one_pass(
    root: etree._Element, originals: dict[etree._Element, etree._Element], problems: ProblemCollector
) -> set[etree._Element]:
    """Validate once and report the faults; returns the unexpected elements."""
    unexpected: set[etree._Element] = set()
    paths = ElementPaths(root)
    for entry in _errors(root):
        handler = _HANDLERS.get(entry.type_name)
        if handler is None:
            continue
        element = paths.element(entry.path)
        if element in unexpected:
            continue
        message = handler(element, entry.message, problems)
        parent = element.getparent()
        if entry.type_name != "SCHEMAV_ELEMENT_CONTENT" or parent is None:
            problems.error(originals[element], message)
            continue
        # Order does not matter in the grammar, so every sibling of this name is unexpected, too.
        for sibling in parent.iterchildren(element.tag):
            if sibling not in unexpected:
                unexpected.add(sibling)
                problems.error(originals[sibling], message)
    return unexpected


def _unknown_attribute(element: etree._Element, message: str, problems: ProblemCollector) -> str:
    found = _ATTRIBUTE.search(message)
    name = found[1] if found else ""
    hint = problems.hint(name, _attributes(_type_name(element)))
    return f"{label(element)}: unknown attribute {quote(name)}{hint}"


def _missing_attribute(element: etree._Element, message: str, _problems: ProblemCollector) -> str:
    found = _REQUIRED.search(message)
    return f"{label(element)}: attribute {quote(found[1] if found else '')} is missing"


def _unexpected_element(element: etree._Element, _message: str, problems: ProblemCollector) -> str:
    parent = element.getparent()
    if parent is None:
        return f"unexpected element {quote(element.tag)}"
    hint = problems.hint(element.tag, _children(_type_name(parent)))
    return f"unexpected element {quote(element.tag)} in {label(parent)}{hint}"


def _unexpected_text(element: etree._Element, _message: str, _problems: ProblemCollector) -> str:
    return f"{label(element)}: text is not allowed here"


def _unexpected_child(element: etree._Element, _message: str, _problems: ProblemCollector) -> str:
    return f"{label(element)}: may not contain elements"


_HANDLERS: dict[str, Callable[[etree._Element, str, ProblemCollector], str]] = {
    "SCHEMAV_CVC_COMPLEX_TYPE_3_2_1": _unknown_attribute,
    "SCHEMAV_CVC_COMPLEX_TYPE_3_2_2": _unknown_attribute,
    "SCHEMAV_CVC_COMPLEX_TYPE_4": _missing_attribute,
    "SCHEMAV_ELEMENT_CONTENT": _unexpected_element,
    "SCHEMAV_CVC_COMPLEX_TYPE_2_1": _unexpected_child,
    "SCHEMAV_CVC_COMPLEX_TYPE_2_3": _unexpected_text,
}


def _errors(root: etree._Element) -> Sequence[_Entry]:
    # A validator keeps the errors of its last run, so threads must not share it.
    validator = etree.XMLSchema(_grammar())
    validator.validate(root)
    return list(cast(Iterable[_Entry], validator.error_log))


@functools.cache
def _grammar() -> etree._Element:
    text = resources.files("qmf.schema.parsing").joinpath("grammar.xsd").read_bytes()
    return etree.fromstring(text, etree.XMLParser(remove_comments=True, no_network=True))


def _type_name(element: etree._Element) -> str:
    """The grammar's type of a valid element: its name; for a group within a class or group, `groupUse`."""
    parent = element.getparent()
    return "groupUse" if element.tag == "group" and parent is not None and parent.tag != "schema" else element.tag


@functools.cache
def _attributes(type_name: str) -> tuple[str, ...]:
    declared = _grammar().iterfind(f"xs:complexType[@name='{type_name}']/xs:attribute", _XS)
    return tuple(str(attribute.get("name")) for attribute in declared)


@functools.cache
def _children(type_name: str) -> tuple[str, ...]:
    path = f"xs:complexType[@name='{type_name}']"
    groups = {str(use.get("ref")) for use in _grammar().iterfind(f"{path}//xs:group", _XS)}
    paths = [f"{path}//xs:element", *(f"xs:group[@name='{name}']//xs:element" for name in groups)]
    return tuple(str(declared.get("name")) for path in paths for declared in _grammar().iterfind(path, _XS))
