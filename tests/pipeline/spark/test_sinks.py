"""Tables that streams write: each row exactly once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pipeline.lakes import Shop
from pipeline.quick import PATIENCE

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")


from qmf.pipeline.frames import Frames
from qmf.pipeline.spark import sinks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

PROGRAM = "import sys; from qmf.pipeline.cli import main; sys.exit(main())"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


@pytest.mark.parametrize("written", [False, True])
def test_an_interrupted_batch_is_written_once(spark: SparkSession, shop: Shop, tmp_path: Path, written: bool) -> None:
    out = str(tmp_path / "out")

    def cut(frame: DataFrame, _number: int) -> DataFrame:
        raise RuntimeError("cut off")

    def cut_after(_frame: DataFrame, _number: int) -> None:
        raise RuntimeError("cut off")

    shop.put((1, 10), (2, 20))
    frame = Frames(spark, shop.root, stream=True).objects("till").select("_seq")
    query = (
        sinks.start_stream(frame, out, name="q", once=True, on_written=cut_after)
        if written
        else sinks.start_stream(frame, out, name="q", once=True, transform=cut)
    )
    with pytest.raises(Exception, match="cut off"):
        query.awaitTermination(PATIENCE)
    shop.put((3, 30))
    seen: list[int] = []

    def look(rows: DataFrame, _number: int) -> None:
        seen.extend(row["_seq"] for row in rows.collect())

    query = sinks.start_stream(frame, out, name="q", once=True, on_written=look)
    assert query.awaitTermination(PATIENCE)
    table = sinks.read_table(spark, out)
    assert table is not None
    assert sorted(row["_seq"] for row in table.collect()) == sorted(seen) == [2, 3, 4]
