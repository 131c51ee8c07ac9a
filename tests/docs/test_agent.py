"""docs/agent.md."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from docs.page import ROOT
from docs.runner import run_page

pytestmark = pytest.mark.slow


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    run_page("docs/agent.md", tmp_path, monkeypatch)
