"""The data source `qmf` on a bus: snapshots, and streams through a spool that are killed with it."""

from __future__ import annotations

import itertools
import json
import random
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow.parquet
import pytest
from pipeline.kills import kill_family
from pipeline.quick import PATIENCE, QUICK
from support.processes import running
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.hostagent import EmbeddedHostAgent, ProcessSelection, Settings
from qmf.pipeline import Lake

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.frames import Frames
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.spark import sinks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

#: Follows a bus through a spool until it is killed.
FOLLOW = """
import json, sys
from qmf.pipeline.spark import sinks
from qmf.pipeline.spark import session
url, spool, out, settings = sys.argv[1:]
spark = session("local[1]", partitions=1, settings=json.loads(settings))
stream = spark.readStream.format("qmf").options(url=url, spool=spool, kind="objects", interval="0.5").load()
def report(_rows, number):
    print("batch", number)
query = sinks.start_stream(stream, out, name="killed", every="0 seconds", on_written=report)
print("following", flush=True)
query.awaitTermination()
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    settings = Settings(interval=0.5, instance="spark", selection=ProcessSelection.parse("none"))
    with EmbeddedBroker() as broker, EmbeddedHostAgent(broker.url, settings=settings):
        yield broker.url


def test_a_snapshot_of_the_bus(spark: SparkSession, url: str) -> None:
    frame = spark.read.format("qmf").option("url", url).option("package", "qmf.host").option("class", "memory").load()
    (row,) = frame.collect()
    assert row["_agent"] == "qmf:host:spark"
    assert row["total"] > 0


def test_invalid_options_are_errors(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(Exception, match='a snapshot needs the option "url"'):
        spark.read.format("qmf").option("lake", str(tmp_path)).option("kind", "agents").load().collect()
    with pytest.raises(Exception, match=r'the option "class" is missing, or "kind" with one of objects, events'):
        spark.readStream.format("qmf").option("lake", str(tmp_path)).load()


@pytest.mark.soak
def test_killed_with_its_spool_a_stream_neither_loses_nor_repeats(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    chance = random.Random(random.randrange(1000))  # pytest-randomly prints the seed
    spool, out, quick = tmp_path / "spool", tmp_path / "out", json.dumps(QUICK)
    for killed in range(2):
        before = _last_batch(out)

        def began(before: int = before, killed: int = killed) -> bool:
            return len(_runs(spool)) > killed and _last_batch(out) > before

        with running(sys.executable, "-u", "-c", FOLLOW, url, str(spool), str(out), quick) as process:
            wait_until(began, "the spool and the query", PATIENCE)
            threading.Event().wait(chance.uniform(0, 1.5))  # so that the kill comes at any point of its work
            kill_family(process)
    Lake(spool).recover("spool")
    query = sinks.start_stream(
        Frames(spark, str(spool), stream=True).any(RowKind.OBJECTS), str(out), name="rest", once=True
    )
    assert query.awaitTermination(PATIENCE)

    spooled = sorted(_numbers(spool))
    table = sinks.read_table(spark, str(out))
    assert table is not None
    assert sorted((row[0], row[1]) for row in table.select("_run", "_seq").collect()) == spooled
    assert len(set(spooled)) == len(spooled) > 0
    assert len(_runs(spool)) == 2
    # Rows of all kinds are numbered without a gap, and a kill costs rows of a run's last commit only: it writes several
    # files, and whole files are added to the log afterwards.
    commits: dict[str, list[list[int]]] = defaultdict(list)
    for entry in Lake(spool).entries():
        for run, group in itertools.groupby(sorted(_rows(spool, entry.added)), key=itemgetter(0)):
            commits[run].append([seq for _, seq in group])
    for *whole, last in commits.values():
        seqs = [seq for commit in whole for seq in commit]
        assert seqs == list(range(1, len(seqs) + 1))
        assert min(last) > len(seqs)


def _numbers(spool: Path) -> list[tuple[str, int]]:
    """Run and number of the objects' rows in the log of a lake."""
    return _rows(spool, (path for path in Lake(spool).files() if path.startswith("objects/")))


def _rows(spool: Path, paths: Iterable[str]) -> list[tuple[str, int]]:
    """Run and number of the rows in files of a lake."""
    found: list[tuple[str, int]] = []
    for path in paths:
        table = pyarrow.parquet.ParquetFile(spool / path).read(["_run", "_seq"])
        found += zip(table["_run"].to_pylist(), table["_seq"].to_pylist(), strict=True)
    return found


def _last_batch(out: Path) -> int:
    """Number of the last batch that Spark noted as done; -1 for none."""
    return max((int(path.name) for path in out.glob("_checkpoint/commits/[0-9]*")), default=-1)


def _runs(spool: Path) -> set[str]:
    """The runs of recorders that wrote into a lake."""
    return {path.rsplit("-", 2)[1] for path in Lake(spool).files()}
