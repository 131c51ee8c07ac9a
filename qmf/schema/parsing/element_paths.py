"""Finds the elements that libxml2's error messages name by a path, each in constant time.

XPath needs time proportional to the number of siblings; with one error per sibling that is too slow for a hostile file.
"""

from __future__ import annotations

import re
from collections import defaultdict

from lxml import etree

# libxml2 writes ``/schema/class[2]/property``, ``*`` for names in a default namespace, ``/@type`` for attributes.
_STEP = re.compile(r"([^\[\]/@]+)(?:\[([0-9]+)\])?")


class ElementPaths:
    """Finds elements of a tree, which must not change in the meantime.

    Attributes:
        root: the outermost element.
    """

    def __init__(self, root: etree._Element) -> None:
        self.root = root
        self._children: dict[etree._Element, dict[str, list[etree._Element]]] = {}
        #: Elements by the paths that were asked for: an element may have many errors, and its siblings have its parent.
        self._found: dict[str, etree._Element] = {}

    def element(self, path: str | None) -> etree._Element:
        """The element at `path`, or that of its attribute; if the path is not unique, the nearest known ancestor."""
        return self._at(path or "")[0]

    def _at(self, path: str) -> tuple[etree._Element, bool]:
        """The element at `path`, or the nearest known ancestor, and whether it is that of the path."""
        if (known := self._found.get(path)) is not None:
            return known, True
        above, _, step = path.rpartition("/")
        if not above:  # the outermost element itself
            return self.root, True
        parent, exact = self._at(above)
        match = _STEP.fullmatch(step) if exact else None
        siblings = self._index(parent).get(match[1], []) if match else []
        number = int(match[2] or 1) if match else 0
        if not 1 <= number <= len(siblings):
            return parent, False
        found = self._found[path] = siblings[number - 1]
        return found, True

    def _index(self, parent: etree._Element) -> dict[str, list[etree._Element]]:
        index = self._children.get(parent)
        if index is None:
            index = defaultdict(list)
            for child in parent.iterchildren("*"):
                name = etree.QName(child).localname
                index[f"{child.prefix}:{name}" if child.prefix else name].append(child)
                index["*"].append(child)
            self._children[parent] = index
        return index
