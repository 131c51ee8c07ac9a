"""The problems of a schema file, collected while the passes run, and the phrases that their messages share."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

from lxml import etree

from qmf.errors import SchemaProblem
from qmf.schema.parsing.document import Document

#: Largest number of searches for similar names per file: in a hostile file, comparing all names would take minutes.
MAX_HINTS = 100
_MAX_HINT_LENGTH = 64
_MAX_HINT_NAMES = 2000
_MAX_SHOWN = 60


def quote(text: str) -> str:
    """`text` from the file in quotes, on one line and not too long."""
    return repr(text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 3] + "...")


def label(element: etree._Element) -> str:
    """The name of an element in messages, e.g. ``property 'depth'``."""
    name = element.get("name")
    return element.tag if name is None else f"{element.tag} {quote(name)}"


class ProblemCollector:
    """Collects problems of one document; each is reported once, in file order.

    Attributes:
        document: the file.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self._errors: dict[tuple[etree._Element, str], None] = {}
        self._warnings: dict[tuple[etree._Element, str], None] = {}
        self._faulty: set[etree._Element] = set()
        self._hints = 0

    def error(self, element: etree._Element, message: str) -> None:
        """Report that `element` breaks a rule."""
        self._errors[element, message] = None
        self._faulty.add(element)

    def warning(self, element: etree._Element, message: str) -> None:
        """Report that `element` is valid, but probably a mistake."""
        self._warnings[element, message] = None

    @property
    def has_errors(self) -> bool:
        """True when any error was reported."""
        return bool(self._errors)

    def is_faulty(self, element: etree._Element) -> bool:
        """True when an error was reported for `element` itself."""
        return element in self._faulty

    def hint(self, name: str, known: Collection[str]) -> str:
        """Text to append to a message about an unknown `name`: the most similar known name, or nothing."""
        if self._hints >= MAX_HINTS or len(name) > _MAX_HINT_LENGTH or len(known) > _MAX_HINT_NAMES:
            return ""
        self._hints += 1
        names = {item.lower(): item for item in known}
        near = difflib.get_close_matches(name.lower(), names, n=1)
        return f"; did you mean {quote(names[near[0]])}?" if near else ""

    @property
    def errors(self) -> list[SchemaProblem]:
        """All errors, in file order."""
        return self._in_file_order(self._errors)

    @property
    def warnings(self) -> list[SchemaProblem]:
        """All warnings, in file order."""
        return self._in_file_order(self._warnings)

    def _in_file_order(self, found: Iterable[tuple[etree._Element, str]]) -> list[SchemaProblem]:
        positions = self.document.positions
        ordered = sorted(found, key=lambda item: positions[item[0]])
        return [SchemaProblem(self.document.name, positions[element][0], message) for element, message in ordered]
