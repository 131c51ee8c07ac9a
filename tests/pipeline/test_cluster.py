"""The jobs on a Spark with executors in separate processes, as on a cluster."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pipeline.lakes import Shop
from pipeline.quick import QUICK

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.aggregation.tables import RollupOptions  # noqa: E402
from qmf.pipeline.rollup import job  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.slow, pytest.mark.soak]

#: Rolls a lake up on two executors, as a batch and as a stream; prints the executors' process ids.
PROGRAM = """
import json, os, sys
from qmf.pipeline.rollup import job
from qmf.pipeline.spark import session
lake, out = sys.argv[1:3]
quick = json.loads(sys.argv[3])
quick["spark.executor.extraJavaOptions"] = quick["spark.driver.extraJavaOptions"]
spark = session("local-cluster[2,1,512]", partitions=2, settings={**quick, "spark.executor.memory": "512m"})
print(spark.sparkContext.applicationId)
options = RollupOptions(lake=lake, out=out, late="0 seconds")
job.rollup_batch(spark, options, lambda _text: None)
(query,) = job.rollup_stream(spark, options, once=True)
assert query.awaitTermination(120)
executors = spark.sparkContext.parallelize(range(8), 8).map(lambda _: os.environ["SPARK_EXECUTOR_DIRS"]).collect()
print(json.dumps(sorted(set(executors))))
spark.stop()
"""


def test_executors_in_separate_processes_give_the_same_rows(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    for number in range(12):
        shop.put(*((number * 20 + n, number * 20 + n) for n in range(20)), object=f"till-{number % 3}")
    shop.put((10_000, 0))
    there, here = tmp_path / "there", tmp_path / "here"
    command = [sys.executable, "-c", PROGRAM, shop.root, str(there), json.dumps(QUICK)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stderr
    application, *_, executors = run.stdout.splitlines()
    shutil.rmtree(Path(pyspark.__file__).parent / "work" / application)  # what the executors logged
    assert len(json.loads(executors)) == 2
    options = RollupOptions(lake=shop.root, out=str(here))
    job.rollup_batch(spark, options, lambda _text: None)
    expected = sorted(job.read_rollups(spark, options).collect())
    options = RollupOptions(lake=shop.root, out=str(there))
    assert sorted(job.read_rollups(spark, options).collect()) == expected
    streamed = sorted(job.read_rollups(spark, options, "stream").collect())
    assert streamed == [row for row in expected if row["window_start"].year == 1970 and row["last_ns"] < 9_000 * 10**9]
