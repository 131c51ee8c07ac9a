"""What is asked for in a report. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import attrs

#: Characters of a value at most.
_LENGTH = 200


@attrs.frozen(kw_only=True)
class ReportQuestion:
    """A report as its address says it; empty texts are left to the command.

    Attributes:
        first, last, length: times and a length, as `qmf-pipeline report` reads them; two at most.
        compare: another time, see there.
        classes: names of classes, separated by commas.
        own: include what agents and consoles created for themselves.
    """

    first: str = ""
    last: str = ""
    length: str = ""
    compare: str = ""
    classes: str = ""
    own: bool = False

    @classmethod
    def parse(cls, query: Mapping[str, str]) -> Self:
        """From the query of an address; what is too long is cut, and then refused by the command."""
        texts = {name: query.get(name, "").strip()[:_LENGTH] for name in ("from", "to", "for", "compare", "class")}
        return cls(
            first=texts["from"],
            last=texts["to"],
            length=texts["for"],
            compare=texts["compare"],
            classes=texts["class"],
            own=query.get("own", "") not in ("", "0", "false"),
        )

    @property
    def arguments(self) -> list[str]:
        """The options of the command; one word each, so that no value can be another option."""
        values = {
            "--from": self.first,
            "--to": self.last,
            "--for": self.length,
            "--compare": self.compare,
            "--class": self.classes,
        }
        return [*(f"{name}={value}" for name, value in values.items() if value), *(["--own"] if self.own else [])]
