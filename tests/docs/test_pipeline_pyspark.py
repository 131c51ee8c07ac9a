"""docs/pipeline-pyspark.md, on a shared Spark."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from docs.page import ROOT
from docs.runner import Runner, stage
from docs.spark_jobs import run_jobs_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


def test_the_page(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with stage(tmp_path, monkeypatch) as made:
        run_jobs_here(made, spark, monkeypatch)
        Runner(ROOT / "docs" / "pipeline-pyspark.md", made).run()
