"""Correlation as a batch on Spark: the alerts of the process."""

from __future__ import annotations

import random
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from pipeline.correlation import RULES, UnsteadyShop, act, batch, fill, ignore, options
from pipeline.lakes import Shop
from support.examples import examples

from qmf.pipeline.correlate.alert_table import AlertTable
from qmf.pipeline.correlate.batch import LakeAlerts
from qmf.pipeline.correlate.batch_input import CorrelateOptions, batch_input
from qmf.pipeline.errors import LakeError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

MORE_RULES = """
[expected]
kind = "absence"
of = "heartbeats"
expect = ["a", "nobody"]
for = "30s"

[share]
kind = "ratio"
dividend = {class = "till", value = "queue", id = "name"}
divisor = {class = "till", value = "sales", id = "name"}
above = 0.05

[next]
kind = "threshold"
class = "till"
value = "queue"
above = 6
follow = {nextRef = "org.example.shop:till"}
message = "before {nextRef.name}, which has {nextRef.queue}"

[too-large]
kind = "threshold"
class = "till"
value = "queue * 2305843009213693952"
above = 1

[unfit]
kind = "threshold"
class = "till"
value = "quue"
above = 1

[nowhere]
kind = "count"
event = "org.example.shop:unheardOf"
at_least = 1
within = "1m"
"""


def check(spark: SparkSession, of: CorrelateOptions, task_rows: int = 1000) -> LakeAlerts:
    """Compare Spark's alerts with those of this process."""
    from qmf.pipeline.runners.spark import SparkRunner

    expected = batch(of)
    before = AlertTable(of.out, "batch").table.version() or 0
    found = batch(of, runner=SparkRunner(spark, task_rows))
    assert (found.alerts, found.counts) == (expected.alerts, expected.counts)
    assert [line.partition(": ")[0] for line in found.failures] == [
        line.partition(": ")[0] for line in expected.failures
    ]
    assert AlertTable(of.out, "batch").table.version() == before + 1
    return expected


@examples(
    1,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(chance=st.randoms(use_true_random=False), late=st.sampled_from([0, 5_000_000_000]))
def test_random_histories_have_the_same_alerts(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory, chance: random.Random, late: int
) -> None:
    shop = UnsteadyShop(tmp_path_factory.mktemp("lake"), chance)
    at = 1000.0
    for _ in range(120):
        at += chance.choice([1, 1, 2, 5, 20])
        act(shop, at)
    shop.flush()
    check(spark, options(shop, RULES + MORE_RULES, late=late), task_rows=40)


def test_known_alerts_of_some_days_by_relative_paths(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the executors have another working directory
    shop = Shop("lake")
    fill(shop)
    found = check(spark, options(shop, RULES + MORE_RULES))
    assert {item.rule for item in found.alerts} >= {"busy", "closed", "often", "expected", "share", "too-large"}
    assert sorted(line.split(": ")[1] for line in found.failures) == ["too-large", "unfit"]
    check(spark, options(shop, RULES, first="1970-01-02"))


def test_a_lake_that_an_executor_lacks_is_an_error(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    fill(shop)
    own, files = batch_input(options(shop), ignore)
    (tmp_path / "lake").rename(tmp_path / "elsewhere")
    with pytest.raises(LakeError, match="No such file or directory"):
        own.times(files)
    with closing(own.reader()) as reader, pytest.raises(LakeError, match="No such file or directory"):
        list(reader.signals(own.rows(files)))
