"""Rendered modules are formatted by ruff, whatever its user has configured."""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import pytest
from qmf_codegen.errors import CodegenError
from qmf_codegen.python.formatting import format_modules
from qmf_codegen.python.imports import AGENT, IMPORTED, SCHEMA, import_statements


def formatted(text: str) -> str:
    return format_modules({"m.py": text})["m.py"]


def test_imports_are_those_that_the_module_uses() -> None:
    text = formatted(
        f"import attrs\n{import_statements(AGENT)}\n"
        '@attrs.frozen\nclass A(Event):\n    """UUID and Mapping."""\n    x: ClassVar[UUID] = schema.A\n'
    )
    assert text.split("\n\n\n")[0].split("\n") == [
        "from typing import ClassVar",
        "from uuid import UUID",
        "",
        "import attrs",
        "",
        "from qmf.agent import Event",
        "",
        "from . import schema",
    ]
    assert (
        formatted(f"{import_statements(SCHEMA)}\nA = Schema()\n") == "from qmf.schema import Schema\n\nA = Schema()\n"
    )


def test_exports_are_sorted() -> None:
    text = formatted("Queue = A9 = A10 = QUEUE = 1\n__all__ = ['Queue', 'A10', 'A9', 'QUEUE']\n")
    assert text.endswith('__all__ = ["A9", "A10", "QUEUE", "Queue"]\n')


def test_several_modules_keep_their_names_and_line_ends() -> None:
    modules = {"build/venv.py": "a=1", "build/schema.py": "b = '\\r'\r\n"}
    assert format_modules(modules) == {"build/venv.py": "a = 1\n", "build/schema.py": 'b = "\\r"\r\n'}


def test_configuration_of_the_user_has_no_influence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ruff.toml").write_text("line-length = 20\nindent-width = 2\n")
    (tmp_path / "ruff.py").write_text("raise SystemExit(7)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("RUFF_OUTPUT_FORMAT", "json")
    line = f"x = [{', '.join(['1'] * 30)}]\n"
    assert formatted(line) == line


@pytest.mark.parametrize("text", ["x = (\n", "x = undefined\n", "def f(a, a): ...\n"])
def test_invalid_modules_are_refused(text: str) -> None:
    with pytest.raises(CodegenError, match="the generator made invalid code: "):
        formatted(text)


def test_ruff_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    python = tmp_path / "python"
    monkeypatch.setattr(sysconfig, "get_path", lambda _: str(tmp_path))
    python.write_text('#!/bin/sh\necho "$0: No module named ruff" >&2\nexit 1\n')
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(CodegenError, match=r"ruff is not installed, .*: pip install '\.\[codegen\]'"):
        formatted("x = 1\n")


def test_names_that_schemas_must_avoid() -> None:
    assert {"attrs", "schema", "Attribute", "UNSET", "ClassVar"} <= IMPORTED
    assert "annotations" not in IMPORTED
