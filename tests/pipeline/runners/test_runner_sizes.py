"""What a task is given, as it is sent to another process: its own files, nothing that grows with those of others."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from pipeline.correlation import RULES, options
from pipeline.lakes import Shop

from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.tables import AuditOptions
from qmf.pipeline.correlate.batch import correlate_batch
from qmf.pipeline.maintenance.checking import LakeCheck
from qmf.pipeline.rollup import job as rollup_job
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.pipeline.runners.process import ProcessRows, ProcessRunner
from qmf.pipeline.runners.runner import Map, Mapped, Reduce, Rows, Runner, Task

cloudpickle = pytest.importorskip("pyspark.cloudpickle", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

FOLLOWING = """
[between]
kind = "threshold"
class = "till"
value = "queue - nextRef.queue"
follow = {nextRef = "org.example.shop:till"}
above = 0
"""


class MeasuringRunner(ProcessRunner):
    """Notes the bytes of the tasks and of the functions that it is given, as Spark sends them."""

    def __init__(self) -> None:
        super().__init__(task_rows=4)
        self.tasks: list[int] = []
        self.functions: list[int] = []

    def map(self, tasks: Sequence[Task], work: Map[Task], schema: Any) -> Rows:
        self._measure(tasks, work)
        return super().map(tasks, work, schema)

    def each(self, tasks: Sequence[Task], work: Callable[[Task], Mapped]) -> list[Mapped]:
        self._measure(tasks, work)
        return super().each(tasks, work)

    def _measure(self, tasks: Sequence[Any], work: Any) -> None:
        self.tasks += [len(pickle.dumps(task)) for task in tasks]
        self.functions.append(len(cloudpickle.dumps(work)))


def rollup(runner: Runner, shop: Shop) -> None:
    options = RollupOptions(lake=shop.root, out=f"{shop.root}/_tables/rollup", sizes=("1m", "1h"))
    roll_up_lake(runner, options, ignore)


def correlate(runner: Runner, shop: Shop) -> None:
    correlate_batch(runner, options(shop, RULES + FOLLOWING), ignore)


def audit(runner: Runner, shop: Shop) -> None:
    audit_lake(runner, AuditOptions(shop.root, f"{shop.root}/_tables/audit"), ignore)


def check(runner: Runner, shop: Shop) -> None:
    list(LakeCheck(runner, shop.lake, now_ns=10**12).findings())


def ignore(_text: str) -> None:
    return


def measured(
    root: Path, commits: int, job: Callable[[Runner, Shop], None], monkeypatch: pytest.MonkeyPatch
) -> tuple[int, int, int]:
    """Number of tasks of a job, and the largest size of a task and of a function."""
    shop = Shop(root)
    for number in range(commits):
        shop.put((number, number), (number + 0.5, number), queue=number % 9, name="one", nextRef="one")
        shop.beat(number)
    runner = MeasuringRunner()
    reduce = ProcessRows.reduce

    def measuring(self: ProcessRows, key: Sequence[str], work: Reduce, *more: Any, **options: Any) -> Rows:
        runner.functions.append(len(cloudpickle.dumps(work)))
        return reduce(self, key, work, *more, **options)

    with monkeypatch.context() as patch:
        patch.setattr(ProcessRows, "reduce", measuring)
        patch.setattr(rollup_job, "MAX_VALUES", 0)
        job(runner, shop)
    return len(runner.tasks), max(runner.tasks), max(runner.functions)


@pytest.mark.slow
@pytest.mark.parametrize("job", [rollup, correlate, audit, check])
def test_a_task_of_a_larger_lake_is_not_larger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, job: Callable[[Runner, Shop], None]
) -> None:
    few, task, function = measured(tmp_path / "few", 4, job, monkeypatch)
    many, larger_task, larger_function = measured(tmp_path / "many", 16, job, monkeypatch)
    assert many > 2 * few
    # Numbers and names of more digits.
    assert larger_task - task < 100
    assert larger_function - function < 100
