"""Large days are sorted by object: a reader of one object opens few files, and nothing else changes."""

from __future__ import annotations

from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from pipeline.lakes import HERE, Shop, recorded

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.errors import LakeError
from qmf.pipeline.history.files import LakeFiles
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.clustering import cluster, days_to_cluster
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.maintenance import MaintenanceCounts, optimize_table
from qmf.pipeline.lake.table_log import files_added_since
from qmf.pipeline.maintenance.optimizing import optimize_lake

pytestmark = pytest.mark.slow

DAY = 86_400
PATH = "objects/org.example.shop/till"

#: Files of this size at most: the writer makes one of each batch of rows.
SMALL = 20_000


@pytest.fixture(scope="module")
def recorded_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A day in which each of twenty commits has samples of all tills of two agents."""
    folder = tmp_path_factory.mktemp("recorded") / "lake"
    shop = Shop(folder)
    for number in range(20):
        for agent in ("a", "b"):
            for till in range(20):
                at = DAY + number * 100 + till
                shop.put(*((at, number),) * 20, object=f"till-{till:02}", agent=agent, commit=False)
        shop.commit()
    return folder


@pytest.fixture
def lake(recorded_lake: Path, tmp_path: Path) -> DeltaLake:
    import shutil

    shutil.copytree(recorded_lake, tmp_path / "lake")
    return DeltaLake(str(tmp_path / "lake"))


def optimized(lake: DeltaLake, rows: int = 1000) -> MaintenanceCounts:
    return optimize_lake(HERE, lake, target_bytes=SMALL, cluster_rows=rows)


def of_object(lake: DeltaLake, agent: str, name: str) -> list[str]:
    """The files that a reader of one object opens."""
    files = LakeFiles(lake.url)
    files.refresh()
    version = next(item.version for item in files.classes)
    return [file.path for file in files.select(RowKind.OBJECTS, version, object=(agent, name)).files]


def test_a_reader_of_one_object_opens_few_files(lake: DeltaLake) -> None:
    before = recorded(lake, PATH)
    assert len(of_object(lake, "b", "till-07")) == 20
    done = optimized(lake)
    assert done.combined >= 20
    lake = DeltaLake(lake.url)
    files = lake.table(PATH).snapshot().files
    assert len(files) >= 8
    for agent, name in (("a", "till-00"), ("b", "till-07"), ("b", "till-19")):
        assert (
            len(of_object(lake, agent, name)) <= 3
        )  # one of them has the end of one agent and the beginning of the other
    assert not of_object(lake, "c", "till-07")
    assert recorded(lake, PATH) == before
    assert optimized(lake) == MaintenanceCounts()


def test_filters_of_spark_choose_files_by_object(lake: DeltaLake) -> None:
    spark = pytest.importorskip(
        "pyspark.sql.datasource", reason="pyspark is not installed: pip install 'qmf[pipeline]'"
    )
    from qmf.pipeline.spark_access.lake_stream import may_have

    optimized(lake)
    files = DeltaLake(lake.url).table(PATH).snapshot().files
    filters = [spark.EqualTo(("_agent",), "b"), spark.EqualTo(("_object",), "till-07")]
    assert 1 <= sum(may_have(file, filters) for file in files) <= 3


def test_other_engines_choose_files_by_object(lake: DeltaLake) -> None:
    optimized(lake)
    table = deltalake.DeltaTable(str(Path(lake.url, PATH)))
    assert "_object" in table.metadata().configuration["delta.dataSkippingStatsColumns"]
    found = table.to_pyarrow_dataset().to_table(columns=["_seq"], filter=pa.compute.field("_object") == "till-07")
    assert found.num_rows == 2 * 20 * 20


def test_sorted_rows_are_no_news(lake: DeltaLake) -> None:
    table = lake.table(PATH)
    position = table.version()
    assert position is not None
    optimized(lake)
    other = LakeTable(table.url)
    assert other.added_files(position, other.version() or 0) == ()
    assert files_added_since(table.url, position) is None  # the library is asked
    Shop(lake.url, run="2").put((DAY + 5, 1), object="late")
    (late,) = LakeTable(table.url).added_files(position, LakeTable(table.url).version() or 0)
    assert (late.rows, late.first_object, late.last_object) == (1, "late", "late")


def test_late_rows_wait_until_they_are_many(lake: DeltaLake) -> None:
    optimized(lake)
    shop = Shop(lake.url, run="2")
    for number in range(3):
        shop.put((DAY + number, 1), object="late")
    assert optimized(lake) == MaintenanceCounts()
    assert optimize_table(DeltaLake(lake.url).table(PATH), target_bytes=1 << 30) == MaintenanceCounts()
    shop.put(*((DAY + 9, 1),) * 2000, object="late")
    assert optimized(lake).combined > 4
    assert len(of_object(DeltaLake(lake.url), "a", "late")) <= 4


def test_small_days_and_the_present_one_are_combined(lake: DeltaLake) -> None:
    assert not days_to_cluster(lake.table(PATH).snapshot().files, "1970-01-02", 1000)
    assert not days_to_cluster(lake.table(PATH).snapshot().files, "1970-01-03", 100_000)
    assert optimize_lake(HERE, lake).written >= 1
    assert len(DeltaLake(lake.url).table(PATH).snapshot().files) == 1


def test_files_that_another_process_combined_are_not_moved(lake: DeltaLake) -> None:
    table = lake.table(PATH)
    before = recorded(lake, PATH)
    files = table.snapshot().files
    optimize_table(LakeTable(table.url))
    with pytest.raises(LakeError, match="was replaced meanwhile"):
        cluster(table, files, SMALL)
    assert recorded(DeltaLake(lake.url), PATH) == before


def test_commits_of_a_recorder_meanwhile_are_kept(lake: DeltaLake, monkeypatch: pytest.MonkeyPatch) -> None:
    table = lake.table(PATH)
    files = table.snapshot().files
    shop = Shop(lake.url, run="2")
    snapshot = LakeTable.snapshot
    pending = [1]

    def after_a_commit(self: LakeTable, *arguments: object) -> object:
        found = snapshot(self, *arguments)  # type: ignore[arg-type]
        if self is table and pending:
            pending.pop()
            shop.put((DAY + 5, 1), object="late")
        return found

    monkeypatch.setattr(LakeTable, "snapshot", after_a_commit)
    assert cluster(table, files, SMALL) >= 8
    monkeypatch.undo()
    assert len(recorded(DeltaLake(lake.url), PATH)) == 2 * 20 * 20 * 20 + 1
