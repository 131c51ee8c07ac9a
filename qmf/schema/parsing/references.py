"""References: the class of the object that an `objId` names."""

from __future__ import annotations

import re
from collections.abc import Collection

import attrs
from lxml import etree

from qmf.schema.model import Reference
from qmf.schema.parsing.problems import ProblemCollector, label, quote
from qmf.schema.parsing.xml_attributes import flag, is_name
from qmf.schema.types import QmfType

_PACKAGE = re.compile(r"[A-Za-z][A-Za-z0-9_-]*(?:\.[A-Za-z][A-Za-z0-9_-]*)*")


def is_package(text: str) -> bool:
    """True for names joined by dots; they may also hold dashes."""
    return _PACKAGE.fullmatch(text) is not None


@attrs.frozen
class ReferenceReader:
    """Reads references.

    Attributes:
        problems: collects the errors.
        package: the package being read.
        classes: names of its classes; None: they are not known, and any may be named.
    """

    problems: ProblemCollector
    package: str
    classes: Collection[str] | None

    def read(self, element: etree._Element, type: QmfType | None, *, required: bool) -> Reference | None:
        """The `references` of a property, statistic or argument; None if it has no such attribute or an invalid one.

        Three forms are in use: ``Vhost`` for a class of this package, ``qpid.Queue`` where the last dot splits package
        and class, ``org.example:Thing``. Classes of other packages are not known here and not checked.

        Args:
            element: the element.
            type: its type, or None if that is invalid.
            required: an `objId` must have `references` or `isGeneralReference`.
        """
        text = element.get("references")
        general = flag(self.problems, element, "isGeneralReference")
        if type is None:
            return None
        if type.name != "objId":
            for attribute, given in (("references", text is not None), ("isGeneralReference", general)):
                if given:
                    self.problems.error(
                        element, f"{label(element)}: {attribute} is for objId only, not for {type.name}"
                    )
            return None
        if text is None:
            if required and not general:
                self.problems.error(
                    element, f"{label(element)}: an objId needs references (or isGeneralReference for any class)"
                )
            return None
        return self._parse(element, text)

    def _parse(self, element: etree._Element, text: str) -> Reference | None:
        separator = ":" if ":" in text else "."
        package, found, name = text.rpartition(separator)
        if not is_name(name) or (found and not is_package(package)):
            self.problems.error(element, f"{label(element)}: references {quote(text)} is not a class or package:class")
            return None
        if self.classes is not None and (not found or package == self.package) and name not in self.classes:
            hint = self.problems.hint(name, self.classes)
            self.problems.error(element, f"{label(element)}: references unknown class {quote(name)}{hint}")
            return None
        return Reference(package if found else None, name)
