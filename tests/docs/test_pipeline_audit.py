"""docs/pipeline-audit.md, with its jobs in this process."""

from __future__ import annotations

from pathlib import Path

import pytest
from docs.page import ROOT
from docs.runner import Runner, stage
from docs.spark_jobs import run_pipeline_here

pytestmark = pytest.mark.slow


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stage(tmp_path, monkeypatch) as made:
        run_pipeline_here(made)
        Runner(ROOT / "docs" / "pipeline-audit.md", made).run()
