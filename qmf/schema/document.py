"""From bytes to an XML tree with positions, safely.

Schema files may come from anywhere, so the parser is told to trust nothing: no DTD, no entities, no network, no
unlimited depth or size. A document type declaration is refused before libxml2 sees the file.

lxml knows the line where a start tag *ends*; people look for the line where it begins. So a pass of expat, which also
refuses DTDs, notes the positions. Knows XML only, nothing of QMF.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.parsers import expat

import attrs
from lxml import etree

from qmf.errors import Problem, SchemaError

#: Largest schema file that is read. Apache's largest has 37 kB; a person will not maintain one of a megabyte.
MAX_BYTES = 1 << 20
#: Most children of one element, comments included. libxml2 counts siblings to say where an error is, so that a class of
#: 30,000 bad properties would take a minute. Apache's largest element has 63.
MAX_CHILDREN = 2000


@attrs.frozen(eq=False)
class Document:
    """A parsed file.

    Attributes:
        name: of the file, for messages.
        root: its outermost element.
        positions: per element its line, from 1, and its number in document order.
    """

    name: str
    root: etree._Element
    positions: Mapping[etree._Element, tuple[int, int]]

    def line(self, element: etree._Element) -> int:
        """Line in which `element` begins."""
        return self.positions[element][0]


class _DoctypeFound(Exception):
    """Ends the pass of expat."""


def parse(data: bytes, name: str) -> Document:
    """Parse a schema file.

    Args:
        data: the whole file.
        name: of the file, for messages.

    Raises:
        SchemaError: too large, a DTD, or not well-formed. Only the first such fault is reported: whatever follows a
            broken tag cannot be trusted.
    """
    if len(data) > MAX_BYTES:
        raise SchemaError([Problem(name, 1, f"the file has more than {MAX_BYTES} bytes")])
    lines = _lines(data, name)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise SchemaError([_syntax_problem(error, name)]) from error
    # Not reached by way of expat alone when it does not know the file's encoding.
    if root.getroottree().docinfo.internalDTD is not None:
        raise SchemaError([_doctype_problem(name, 1)])
    elements = list(root.iter("*"))
    if len(lines) != len(elements):
        lines = [element.sourceline or 1 for element in elements]
    for element, line in zip(elements, lines, strict=True):
        if len(element) > MAX_CHILDREN:
            raise SchemaError([Problem(name, line, f"{element.tag} has more than {MAX_CHILDREN} children")])
    positions = {element: (line, number) for number, (element, line) in enumerate(zip(elements, lines, strict=True))}
    return Document(name, root, positions)


def _lines(data: bytes, name: str) -> list[int]:
    """The line of each start tag in document order; none where expat cannot read the file."""
    lines: list[int] = []
    parser = expat.ParserCreate()

    def start(_tag: str, _attributes: dict[str, str]) -> None:
        lines.append(parser.CurrentLineNumber)

    def doctype(*_: object) -> None:
        raise _DoctypeFound

    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(data, True)
    except _DoctypeFound:
        raise SchemaError([_doctype_problem(name, parser.CurrentLineNumber)]) from None
    except (expat.ExpatError, ValueError, LookupError):
        # Not well-formed, or in an encoding that only lxml knows.
        return []
    return lines


def _doctype_problem(name: str, line: int) -> Problem:
    return Problem(name, line, "a document type declaration (DOCTYPE) is not allowed")


def _syntax_problem(error: etree.XMLSyntaxError, name: str) -> Problem:
    line = error.lineno or 1
    message = (error.msg or "syntax error").split(", line ")[0].strip()
    return Problem(name, line, f"not well-formed XML: {message}")
