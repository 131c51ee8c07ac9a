"""The glossary and the code agree: every name of the page exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")

#: Names in the second column of the tables, without the packages in front of them.
NAMES = sorted(
    {
        name.rpartition(".")[2]
        for row in re.findall(r"^\|[^|]*\|([^|]*)\|", PAGE, re.MULTILINE)
        for name in re.findall(r"`([A-Za-z_.]+)`", row)
    }
    - {"XState", "on_x", "...Observer", "Observer", "Handler"}
)


def defined() -> set[str]:
    """Every name that the product's modules define: classes, functions, variables, attributes, parameters, modules."""
    names: set[str] = set()
    for root in ("qmf", "shell", "codegen"):
        for path in (ROOT / root).rglob("*.py"):
            names.add(path.stem)
            names |= set(re.findall(r"\b([A-Za-z_][A-Za-z0-9_]*)\b", path.read_text(encoding="utf-8")))
    return names


@pytest.fixture(scope="module")
def code() -> set[str]:
    return defined()


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_glossary_exists(name: str, code: set[str]) -> None:
    assert name in code


def test_the_page_has_names() -> None:
    assert len(NAMES) > 100
