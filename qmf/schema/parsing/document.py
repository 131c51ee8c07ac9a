"""From bytes to an XML tree with positions, safely.

Schema files may come from untrusted sources, so the parser allows no DTD, no entities, no network access, and no
unlimited depth or size. A document type declaration is refused before libxml2 parses the file.

lxml reports the line where a start tag *ends*, but messages should name the line where it begins. So a pass of expat,
which also refuses DTDs, records the positions. This module knows XML only, nothing of QMF.
"""

from __future__ import annotations

from collections.abc import Mapping
from xml.parsers import expat

import attrs
from lxml import etree

from qmf.errors import SchemaError, SchemaProblem

#: Largest schema file that is read, in bytes. Apache's largest has 37 kB.
MAX_BYTES = 1 << 20
#: Largest number of children of one element, including comments. libxml2 counts siblings to locate an error: a class of
#: 30,000 bad properties would take a minute. Apache's largest element has 63.
MAX_CHILDREN = 2000


@attrs.frozen(eq=False)
class Document:
    """A parsed file.

    Attributes:
        name: name of the file, for messages.
        root: the outermost element.
        positions: by element, its line, from 1, and its number in document order.
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
        name: name of the file, for messages.

    Raises:
        SchemaError: too large, a DTD, or not well-formed. Only the first such fault is reported, because a broken tag
            makes what follows meaningless.
    """
    if len(data) > MAX_BYTES:
        raise SchemaError([SchemaProblem(name, 1, f"the file has more than {MAX_BYTES} bytes")])
    lines = _lines(data, name)
    parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
    try:
        root = etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        raise SchemaError([_syntax_problem(error, name)]) from error
    # Needed if expat does not know the encoding of the file.
    if root.getroottree().docinfo.internalDTD is not None:
        raise SchemaError([_doctype_problem(name, 1)])
    elements = list(root.iter("*"))
    if len(lines) != len(elements):
        lines = [element.sourceline or 1 for element in elements]
    for element, line in zip(elements, lines, strict=True):
        if len(element) > MAX_CHILDREN:
            raise SchemaError([SchemaProblem(name, line, f"{element.tag} has more than {MAX_CHILDREN} children")])
    positions = {element: (line, number) for number, (element, line) in enumerate(zip(elements, lines, strict=True))}
    return Document(name, root, positions)


def _lines(data: bytes, name: str) -> list[int]:
    """The line of each start tag in document order; an empty list if expat cannot read the file."""
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


def _doctype_problem(name: str, line: int) -> SchemaProblem:
    return SchemaProblem(name, line, "a document type declaration (DOCTYPE) is not allowed")


def _syntax_problem(error: etree.XMLSyntaxError, name: str) -> SchemaProblem:
    line = error.lineno or 1
    message = (error.msg or "syntax error").split(", line ")[0].strip()
    return SchemaProblem(name, line, f"not well-formed XML: {message}")
