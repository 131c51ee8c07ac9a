"""README.md: the tour and the programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.runner import run_page

PAGE = Path(__file__).resolve().parents[2] / "README.md"


def test_the_first_screen_says_for_whom_it_is_how_to_start_and_what_it_looks_like() -> None:
    lines = PAGE.read_text(encoding="utf-8").splitlines()
    first = "\n".join(lines[:25])
    for needed in ("You run", "You write", "You have programs", "make shell", "make test", "![qmf-shell]"):
        assert needed in first
    assert len(lines) <= 110


@pytest.mark.slow
def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("README.md", tmp_path, monkeypatch)
