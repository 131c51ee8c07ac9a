"""docs/pipeline-alerts.md."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.page import ROOT
from docs.runner import Runner, stage

pytestmark = pytest.mark.slow


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stage(tmp_path, monkeypatch) as made:
        Runner(ROOT / "docs" / "pipeline-alerts.md", made).run()
