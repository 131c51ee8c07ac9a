"""Pages with jobs on Spark: they run in this process, on the session that tests share."""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from docs.duck import wait_for_rows
from docs.stage import Stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def run_jobs_here(stage: Stage, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on, jobs of the page's commands run on `spark`; a page's own session is `spark` as well.

    A job that would follow the lake ends when it has read all that is in it.
    """

    @contextlib.contextmanager
    def shared(options: object) -> Iterator[SparkSession]:
        yield spark

    monkeypatch.setattr("qmf.pipeline.commands.running.spark_session", shared)
    monkeypatch.setattr("qmf.pipeline.spark.session", lambda *_, **__: spark)
    run_pipeline_here(stage)


def run_pipeline_here(stage: Stage) -> None:
    """From now on, the page's commands of the pipeline run in this process; those that follow a lake end."""
    from qmf.pipeline.cli import main

    def job(line: str) -> tuple[int, str]:
        _, *arguments = shlex.split(stage.as_here(line))
        if "--stream" in arguments:
            arguments.append("--once")
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
            code = main(arguments)
        return code, printed.getvalue()

    stage.programs |= {"qmf-pipeline": job, "wait-for-rows": wait_for_rows}
    stage.absolute = ("lake",)
