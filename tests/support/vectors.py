"""Messages captured from real peers, with their meaning as JSON; they lie beside the checkout."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

VECTORS = Path(__file__).resolve().parents[3] / "shared" / "protocol" / "vectors"

#: Names of all vectors, without ``.json``. Empty where the folder is missing.
NAMES = sorted(path.stem for path in VECTORS.glob("*.json") if path.stem != "index")

_CUT = "... "  # starts the item that stands for the rest of a long list


class Vector:
    """One captured message.

    Attributes:
        name: of its file, without ``.json``.
        data: the encoded message.
        json: the file's content.
    """

    def __init__(self, name: str) -> None:
        if not VECTORS.is_dir():
            pytest.skip("the captured messages are not beside the checkout")
        self.name = name
        self.json: dict[str, Any] = json.loads((VECTORS / f"{name}.json").read_text(encoding="utf-8"))
        self.data: bytes = bytes.fromhex(self.json["hex"])

    @property
    def sections(self) -> dict[str, Any]:
        """Sections with values instead of the JSON's "type value" texts; the data section stays a text."""
        return {
            name: content if name == "data" else untyped(content) for name, content in self.json["sections"].items()
        }


def parametrized(names: list[str]) -> pytest.MarkDecorator:
    """Run a test for each vector named; skip it, with a reason, where there are none at all."""
    missing = pytest.mark.skip(reason="the captured messages are not beside the checkout")
    return pytest.mark.parametrize("name", names or [pytest.param("missing", marks=missing)])


def untyped(node: Any) -> Any:
    """A value of the JSON's typed notation, e.g. ``ulong 5``, as Python value; binary as text."""
    if isinstance(node, dict):
        return {key: untyped(item) for key, item in node.items()}
    if isinstance(node, list):
        return [item if is_cut(item) else untyped(item) for item in node]
    if node is None or node == "null":
        return None
    kind, _, text = node.partition(" ")
    if kind in ("string", "binary", "symbol"):
        return text[1:-1]  # in quotes, but nothing is escaped
    return UUID(text) if kind == "uuid" else ast.literal_eval(text)


def is_cut(item: object) -> bool:
    """True for the item that stands for the rest of a list."""
    return isinstance(item, str) and item.startswith(_CUT)


def agrees(value: object, expected: object) -> bool:
    """Whether a decoded value is what the JSON says: uuids are texts there, and long lists are cut."""
    if isinstance(expected, dict):
        return (
            isinstance(value, dict)
            and value.keys() == expected.keys()
            and all(agrees(value[key], item) for key, item in expected.items())
        )
    if isinstance(expected, list):
        if not isinstance(value, list):
            return False
        if expected and is_cut(expected[-1]):
            more = int(expected[-1].split()[1])
            return len(value) == len(expected) - 1 + more and agrees(value[: len(expected) - 1], expected[:-1])
        return len(value) == len(expected) and all(map(agrees, value, expected))
    if isinstance(value, UUID) and isinstance(expected, str):
        return str(value) == expected
    return type(value) is type(expected) and value == expected
