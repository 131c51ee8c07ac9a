"""docs/mqtt-conformance.md: each numbered statement of MQTT 5 has a test that exists, or a reason why it has none."""

from __future__ import annotations

import ast
import functools
import re
from pathlib import Path

from docs.page import ROOT

PAGE = ROOT / "docs" / "mqtt-conformance.md"
#: Where the modules are that it names.
FOLDERS = [ROOT / "tests" / "broker" / "protocols" / "mqtt", ROOT / "tests" / "broker" / "protocols" / "mqtt" / "codec"]
FOLDERS.append(ROOT / "tests")
#: How many statements each section of the standard has: they are numbered from 1 on.
SECTIONS = {
    "1.5.4": 3, "1.5.5": 1, "1.5.7": 1, "2.1.3": 1, "2.2.1": 6, "2.2.2": 1, "3.1.0": 2, "3.1.2": 30, "3.1.3": 12,
    "3.1.4": 6, "3.2.0": 2, "3.2.2": 22, "3.3.1": 13, "3.3.2": 20, "3.3.4": 10, "3.4.2": 3, "3.5.2": 3, "3.6.1": 1,
    "3.6.2": 3, "3.7.2": 3, "3.8.1": 1, "3.8.3": 5, "3.8.4": 8, "3.9.2": 2, "3.9.3": 2, "3.10.1": 1, "3.10.3": 2,
    "3.10.4": 6, "3.11.2": 2, "3.11.3": 2, "3.12.4": 1, "3.14.0": 1, "3.14.1": 1, "3.14.2": 4, "3.14.4": 3, "3.15.1": 1,
    "3.15.2": 3, "4.1.0": 2, "4.2.0": 1, "4.3.1": 1, "4.3.2": 5, "4.3.3": 13, "4.4.0": 2, "4.5.0": 2, "4.6.0": 6,
    "4.7.0": 1, "4.7.1": 2, "4.7.2": 1, "4.7.3": 4, "4.8.2": 6, "4.9.0": 3, "4.12.0": 7, "4.12.1": 2, "4.13.1": 1,
    "4.13.2": 1, "6.0.0": 4,
}  # fmt: skip
#: A number that the standard leaves out.
LEFT_OUT = {"MQTT-2.2.1-1"}
#: How a reason begins.
REASONS = ("client", "does not apply: ")


def rows() -> list[tuple[str, str, str]]:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    found = [line.strip("| ").split(" | ") for line in lines if line.startswith("| MQTT-")]
    return [(number, wanted, tests) for number, wanted, tests in found]


@functools.cache
def names_in(path: Path) -> frozenset[str]:
    """The names of the tests of a module."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def test_no_statement_is_missing() -> None:
    expected = [f"MQTT-{section}-{number + 1}" for section, count in SECTIONS.items() for number in range(count)]
    assert [number for number, _, _ in rows()] == [number for number in expected if number not in LEFT_OUT]
    assert len(rows()) == 251


def test_each_has_tests_that_are_there_or_a_reason() -> None:
    for number, _, tests in rows():
        named = re.findall(r"`([\w/]+\.py)::(test_\w+)`", tests)
        assert named or tests.startswith(REASONS), number
        for module, name in named:
            paths = [folder / module for folder in FOLDERS if (folder / module).exists()]
            assert any(name in names_in(path) for path in paths), f"{number}: {module} has no {name}"
