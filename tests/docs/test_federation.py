"""docs/federation.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.runner import run_page

pytestmark = pytest.mark.slow


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page("docs/federation.md", tmp_path, monkeypatch)
