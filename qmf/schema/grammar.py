"""The structure check: which elements and attributes are there, by the grammar that ships with this package.

The grammar is an XML Schema (`grammar.xsd`) rather than RELAX NG: libxml2 then says which attribute is missing or
unknown, where its RELAX NG validator only says that an element was not expected, and it finds more than one fault at a
time. After an unexpected element it still skips the siblings, so those are taken out of a copy and the rest is
validated again until nothing new turns up.

Bad values are the business of the rules, which have better words; the grammar's word is only used for elements that the
rules found nothing wrong with, see `report_values`.
"""

from __future__ import annotations

import copy
import functools
import re
from collections.abc import Callable, Iterable, Sequence
from importlib import resources
from typing import Protocol, cast

from lxml import etree

from qmf.schema.paths import Paths
from qmf.schema.report import Report, label, quote

#: Each pass takes out every element of at least one (parent, name) pair; what needs more passes than this is no schema.
MAX_PASSES = 25


class _Entry(Protocol):
    """One error of libxml2; lxml's own stubs leave out the path."""

    message: str
    type_name: str
    path: str | None


_XS = {"xs": "http://www.w3.org/2001/XMLSchema"}
_XSI = "{http://www.w3.org/2001/XMLSchema-instance}"
_ATTRIBUTE = re.compile(r"attribute '([^']*)'")
_REQUIRED = re.compile(r"The attribute '([^']*)' is required")


def check_structure(report: Report) -> bool:
    """Report every unexpected or missing element and attribute.

    Returns:
        False when the root is not a schema at all, so that the rules have nothing to look at.
    """
    original = report.document.root
    if original.tag != "schema":
        report.error(original, f"the root element is {quote(original.tag)}, not 'schema'")
        return False
    for element in original.iter("*"):
        for attribute in map(str, element.attrib):
            # Validators let these pass, and some act on them.
            if attribute.startswith(_XSI):
                report.error(element, f"{label(element)}: unknown attribute {quote(attribute)}")
    root = copy.deepcopy(original)
    originals = dict(zip(root.iter("*"), original.iter("*"), strict=True))
    for _ in range(MAX_PASSES):
        unexpected = _one_pass(root, originals, report)
        if not unexpected:
            return True
        for element in unexpected:
            parent = element.getparent()
            if parent is not None:
                parent.remove(element)
    report.error(original, "too many unexpected elements; stopped looking for more")
    return True


def report_values(report: Report) -> None:
    """Report bad attribute values of elements for which nothing was reported so far.

    The rules know every such value, so this only speaks when grammar and rules disagree.
    """
    root = report.document.root
    paths = Paths(root)
    for entry in _errors(root):
        element = paths.element(entry.path)
        if not report.is_faulty(element):
            report.error(element, f"{label(element)}: {entry.message}")


def _one_pass(
    root: etree._Element, originals: dict[etree._Element, etree._Element], report: Report
) -> set[etree._Element]:
    """Validate once; report, and return the elements that do not belong there."""
    unexpected: set[etree._Element] = set()
    paths = Paths(root)
    for entry in _errors(root):
        handler = _HANDLERS.get(entry.type_name)
        if handler is None:
            continue
        element = paths.element(entry.path)
        if element in unexpected:
            continue
        message = handler(element, entry.message, report)
        parent = element.getparent()
        if entry.type_name != "SCHEMAV_ELEMENT_CONTENT" or parent is None:
            report.error(originals[element], message)
            continue
        # Order never matters in the grammar, so every sibling of this name is as unexpected.
        for sibling in parent.iterchildren(element.tag):
            if sibling not in unexpected:
                unexpected.add(sibling)
                report.error(originals[sibling], message)
    return unexpected


def _unknown_attribute(element: etree._Element, message: str, report: Report) -> str:
    found = _ATTRIBUTE.search(message)
    name = found[1] if found else ""
    hint = report.hint(name, _attributes(_type_name(element)))
    return f"{label(element)}: unknown attribute {quote(name)}{hint}"


def _missing_attribute(element: etree._Element, message: str, _report: Report) -> str:
    found = _REQUIRED.search(message)
    return f"{label(element)}: attribute {quote(found[1] if found else '')} is missing"


def _unexpected_element(element: etree._Element, _message: str, report: Report) -> str:
    parent = element.getparent()
    if parent is None:
        return f"unexpected element {quote(element.tag)}"
    hint = report.hint(element.tag, _children(_type_name(parent)))
    return f"unexpected element {quote(element.tag)} in {label(parent)}{hint}"


def _unexpected_text(element: etree._Element, _message: str, _report: Report) -> str:
    return f"{label(element)}: text is not allowed here"


def _unexpected_child(element: etree._Element, _message: str, _report: Report) -> str:
    return f"{label(element)}: may not contain elements"


_HANDLERS: dict[str, Callable[[etree._Element, str, Report], str]] = {
    "SCHEMAV_CVC_COMPLEX_TYPE_3_2_1": _unknown_attribute,
    "SCHEMAV_CVC_COMPLEX_TYPE_3_2_2": _unknown_attribute,
    "SCHEMAV_CVC_COMPLEX_TYPE_4": _missing_attribute,
    "SCHEMAV_ELEMENT_CONTENT": _unexpected_element,
    "SCHEMAV_CVC_COMPLEX_TYPE_2_1": _unexpected_child,
    "SCHEMAV_CVC_COMPLEX_TYPE_2_3": _unexpected_text,
}


def _errors(root: etree._Element) -> Sequence[_Entry]:
    # A validator keeps the errors of its last run, so threads must not share one.
    validator = etree.XMLSchema(_grammar())
    validator.validate(root)
    return list(cast(Iterable[_Entry], validator.error_log))


@functools.cache
def _grammar() -> etree._Element:
    text = resources.files("qmf.schema").joinpath("grammar.xsd").read_bytes()
    return etree.fromstring(text, etree.XMLParser(remove_comments=True, no_network=True))


def _type_name(element: etree._Element) -> str:
    """The grammar's type of a valid element: its name, but for groups, which are defined and used."""
    parent = element.getparent()
    return "groupUse" if element.tag == "group" and parent is not None and parent.tag != "schema" else element.tag


def _attributes(type_name: str) -> list[str]:
    declared = _grammar().iterfind(f"xs:complexType[@name='{type_name}']/xs:attribute", _XS)
    return [str(attribute.get("name")) for attribute in declared]


def _children(type_name: str) -> list[str]:
    path = f"xs:complexType[@name='{type_name}']"
    groups = {str(use.get("ref")) for use in _grammar().iterfind(f"{path}//xs:group", _XS)}
    paths = [f"{path}//xs:element", *(f"xs:group[@name='{name}']//xs:element" for name in groups)]
    return [str(declared.get("name")) for path in paths for declared in _grammar().iterfind(path, _XS)]
