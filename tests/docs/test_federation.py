"""docs/federation.md and docs/federation-brokers.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.runner import run_page

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("page", ["federation", "federation-brokers"])
def test_the_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_page(f"docs/{page}.md", tmp_path, monkeypatch)
