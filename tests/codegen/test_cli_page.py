"""The page about qmf-codegen names all that the program offers."""

from __future__ import annotations

import re
from pathlib import Path

from qmf_codegen import Format
from qmf_codegen.cli import build_parser

from qmf.schema import TYPES, Severity

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "codegen.md").read_text(encoding="utf-8")


def test_every_type_severity_format_and_option_is_there() -> None:
    terms = set(re.findall(r"`([^`\n]+)`", PAGE))
    assert set(TYPES) <= terms
    assert {item.schema_name for item in Severity} <= terms
    assert {item.value for item in Format} <= terms
    options = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", build_parser().format_help()))
    assert {"-o", "--check", "--from-agent"} <= options
    assert options - {"-h", "--help", "--version"} <= terms
