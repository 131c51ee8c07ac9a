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

    def element(self, path: str | None) -> etree._Element:
        """The element at `path`, or that of its attribute; if the path is not unique, the nearest known ancestor."""
        found = self.root
        for step in (path or "").split("/")[2:]:
            match = _STEP.fullmatch(step)
            siblings = self._index(found).get(match[1], []) if match else []
            number = int(match[2] or 1) if match else 0
            if not 1 <= number <= len(siblings):
                break
            found = siblings[number - 1]
        return found

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
