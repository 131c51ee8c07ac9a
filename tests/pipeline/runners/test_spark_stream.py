"""Streams: steps that a runner makes as a lake grows, in the process and as a query of Spark."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest
from pipeline.lakes import Shop

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.errors import LakeError, PipelineError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_versions import LakeVersions
from qmf.pipeline.runners import spark_stream
from qmf.pipeline.runners.process import ProcessRunner
from qmf.pipeline.runners.runner import Pace, Runner, Step
from qmf.pipeline.runners.spark import SparkRunner

TILLS = "objects/org.example.shop/till"


@pytest.fixture(params=["process", pytest.param("spark", marks=pytest.mark.slow)])
def runner(request: pytest.FixtureRequest) -> Runner:
    if request.param == "process":
        return ProcessRunner()
    return SparkRunner(request.getfixturevalue("spark"))


def follow(runner: Runner, shop: Shop, checkpoint: Path, step: Step, stop: threading.Event) -> None:
    pace = Pace(every=0.01, poll=0.01, once=True)
    runner.follow(shop.lake, str(checkpoint), step, pace, stop)


def test_a_step_that_failed_is_made_again(runner: Runner, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    shop.put((1, 10))
    found: list[int] = []

    def fail(_until: LakeVersions | None) -> bool:
        raise LakeError("cut off")

    def read(until: LakeVersions | None) -> bool:
        assert threading.current_thread() is threading.main_thread()
        known = shop.lake.versions() if until is None else until.versions
        # It is made as long as there is something to do.
        is_new = known[TILLS] not in found
        found.append(known[TILLS])
        return is_new

    stop = threading.Event()
    with pytest.raises(LakeError, match=r"^cut off$"):
        follow(runner, shop, tmp_path / "checkpoint", fail, stop)
    shop.put((2, 20))
    follow(runner, shop, tmp_path / "checkpoint", read, stop)
    # Spark makes the micro-batch that failed with the versions that it had, and then one with what is new.
    assert found == ([0, 0, 1, 1] if isinstance(runner, SparkRunner) else [1, 1])
    # Nothing is new, but a step may complete what the one before has begun.
    follow(runner, shop, tmp_path / "checkpoint", read, stop)
    assert found[-1] == 1
    stop.set()
    made = len(found)
    shop.put((3, 30))
    follow(runner, shop, tmp_path / "checkpoint", read, stop)
    assert len(found) == made


def test_a_stream_ends_after_a_step(runner: Runner, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    shop.put((1, 10))
    stop, versions = threading.Event(), []

    def step(_until: LakeVersions | None) -> bool:
        versions.append(shop.lake.versions()[TILLS])
        if len(versions) == 1:
            shop.put((2, 20))
        else:
            stop.set()
        return False

    runner.follow(shop.lake, str(tmp_path / "checkpoint"), step, Pace(every=0.01), stop)
    assert versions == [0, 1]


def follow_without_python(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failures: int) -> int:
    """Follow a lake by a query for which Python does not start so many times; returns how often it was started."""
    started: list[object] = []

    def start(*arguments: object) -> int | None:
        started.append(arguments)
        return None if len(started) <= failures else 1

    monkeypatch.setattr(spark_stream, "_follow", start)
    monkeypatch.setattr(spark_stream, "register", lambda _spark: None)
    nothing: Any = None
    lake, pace = DeltaLake(str(tmp_path)), Pace(every=1.0)
    spark_stream.follow_lake(nothing, lake, str(tmp_path), lambda _until: False, pace, threading.Event())
    return len(started)


def test_a_query_is_started_again_while_python_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert follow_without_python(monkeypatch, tmp_path, 7) == 8


def test_a_query_for_which_python_does_not_start_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_stream, "_START_LIMIT", 0.0)
    with pytest.raises(PipelineError, match=r"^Spark could not start Python for the stream in 0 s"):
        follow_without_python(monkeypatch, tmp_path, 7)
