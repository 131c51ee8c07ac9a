"""Correlation as a batch on Spark: the alerts of the process."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pipeline.correlation import RULES, UnsteadyShop, act, batch, fill, ignore, options
from pipeline.lakes import Shop

from qmf.pipeline.cli import main
from qmf.pipeline.correlate.alert_table import AlertTable
from qmf.pipeline.correlate.batch import BatchResult
from qmf.pipeline.correlate.batch_input import batch_input
from qmf.pipeline.correlate.options import CorrelateOptions
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


@pytest.fixture
def shared(spark: SparkSession) -> Iterator[SparkSession]:
    """Spark that divides the subjects."""
    partitions = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    yield spark
    spark.conf.set("spark.sql.shuffle.partitions", str(partitions))


def check(spark: SparkSession, of: CorrelateOptions) -> BatchResult:
    """Compare Spark's alerts with those of this process."""
    from qmf.pipeline.correlate.spark_job import correlate_on_spark

    expected = batch(of)
    before = AlertTable(of.out, "batch").table.version()
    found = correlate_on_spark(spark, of, ignore)
    table = AlertTable(of.out, "batch")
    assert list(table.in_order()) == expected.alerts
    assert (found.rows, found.counts) == (len(expected.alerts), expected.counts)
    assert [line.partition(": ")[0] for line in found.failures] == [
        line.partition(": ")[0] for line in expected.failures
    ]
    assert table.table.version() == (before or 0) + 1
    return expected


@settings(
    max_examples=2,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(chance=st.randoms(use_true_random=False), late=st.sampled_from([0, 5_000_000_000]))
def test_random_histories_have_the_same_alerts(
    shared: SparkSession, tmp_path_factory: pytest.TempPathFactory, chance: random.Random, late: int
) -> None:
    from qmf.pipeline.correlate import spark_job

    shop = UnsteadyShop(tmp_path_factory.mktemp("lake"), chance)
    at = 1000.0
    for _ in range(120):
        at += chance.choice([1, 1, 2, 5, 20])
        act(shop, at)
    shop.flush()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spark_job, "TASK_ROWS", 40)
        check(shared, options(shop, RULES + MORE_RULES, late=late))


def test_known_alerts_of_some_days_by_relative_paths(
    shared: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the executors have another working directory
    shop = Shop("lake")
    fill(shop)
    found = check(shared, options(shop, RULES + MORE_RULES))
    assert {item.rule for item in found.alerts} >= {"busy", "closed", "often", "expected", "share", "too-large"}
    assert sorted(line.split(": ")[1] for line in found.failures) == ["too-large", "unfit"]
    check(shared, options(shop, RULES, first="1970-01-02"))


def test_a_lake_that_an_executor_lacks_is_an_error(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    fill(shop)
    own, files = batch_input(options(shop), ignore)
    (tmp_path / "lake").rename(tmp_path / "elsewhere")
    with pytest.raises(LakeError, match="No such file or directory"):
        own.times(files)
    with closing(own.reader()) as reader, pytest.raises(LakeError, match="No such file or directory"):
        list(reader.signals(own.rows(files)))


RULE = '[busy]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 5\n'

REFUSED = [
    (["--stream"], "", "--stream runs in the process of the command: leave out --master"),
    (["--raise"], "", "--master notifies nobody: leave out --raise, --notify and the routes in the rules"),
    ([], '[route]\nreceiver = "log"\n[[receiver]]\nname = "log"\nfile = {path = "told"}\n', "--master notifies nobody"),
]


@pytest.mark.parametrize(("arguments", "routes", "reason"), REFUSED)
def test_what_spark_does_not_do_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], routes: str, reason: str
) -> None:
    fill(Shop(tmp_path / "lake"))
    rules = tmp_path / "rules.toml"
    rules.write_text(RULE + routes)
    command = ["correlate", "--lake", str(tmp_path / "lake"), "--rules", str(rules), "--master", "local[2]"]
    assert main([*command, *arguments]) == 2
    assert f"qmf-pipeline: correlate: {reason}" in capsys.readouterr().err
