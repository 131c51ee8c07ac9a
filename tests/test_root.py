"""What stands at the root of the repository: nothing that a program or a test has left there."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

FILES = {"CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "Makefile", "README.md", "SECURITY.md", "pyproject.toml"}
FOLDERS = {"bench", "codegen", "docs", "examples", "qmf", "schemas", "scripts", "shell", "tests"}


def test_only_what_belongs_there_is_committed() -> None:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a checkout, or no git")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout.decode()
    paths = [Path(name) for name in listed.split("\0") if name and not name.startswith(".")]
    assert {path.name for path in paths if len(path.parts) == 1} <= FILES
    assert {path.parts[0] for path in paths if len(path.parts) > 1} <= FOLDERS
