"""Results of method calls in the published API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class MethodResult:
    """The result of a method call; its outputs are attributes, too. Prints like ``OK (0) - {'body': 'x'}``.

    Attributes:
        status: 0 for success, else a code of QMF2.md 4.6.
        text: ``OK``, or why it failed.
        outArgs: the outputs by name.
    """

    def __init__(self, status: int, text: str, outArgs: Mapping[str, object]) -> None:
        self.status = status
        self.text = text
        self.outArgs = dict(outArgs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.__dict__.get("outArgs", {}).get(name)

    def __repr__(self) -> str:
        return f"{self.text} ({self.status}) - {self.outArgs}"
