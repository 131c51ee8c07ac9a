"""Days of a class in parts of the time, which threads make at once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pipeline.lakes import Shop

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'qmf[pipeline]'")

import duckdb

from qmf.pipeline.duckdb_queries import connect
from qmf.pipeline.rollup import class_rollup
from qmf.pipeline.rollup.class_rollup import ClassRollup
from qmf.pipeline.rollup.source import class_sources
from qmf.pipeline.rollup.windows import made_windows

pytestmark = pytest.mark.slow

#: Threads of DuckDB, and of parts.
THREADS = 2


@pytest.fixture
def connection(monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(class_rollup, "PART_SAMPLES", 1)
    return connect(threads=THREADS, memory_limit="1GB")


def roll_up(connection: Any, shop: Shop) -> ClassRollup:
    (source,) = class_sources(shop.lake)
    return ClassRollup(connection, source, ("1m",), continued=False)


def make_days(shop: Shop, count: int) -> list[str]:
    """Record a sample each hour of a day."""
    for hour in range(count):
        shop.put((3600 * hour, hour))
    return ["1970-01-01"]


def test_a_part_knows_what_was_before_it(connection: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    days = make_days(shop, 20)
    tables = [made.table.to_pylist() for made in roll_up(connection, shop).rows(days)]
    assert len(tables) == 20
    sales = [row["delta"] for rows in tables for row in rows if row["member"] == "sales"]
    assert sales == [0.0] + [1.0] * 19


def test_few_parts_are_made_before_they_are_taken(
    connection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []

    def count_made(connection: Any, source: str, *args: Any, **options: Any) -> Any:
        begun.append(source)
        return made_windows(connection, source, *args, **options)

    monkeypatch.setattr(class_rollup, "made_windows", count_made)
    shop = Shop(tmp_path / "lake")
    days = make_days(shop, 20)
    made = roll_up(connection, shop).rows(days)
    next(made)
    made.close()  # type: ignore[attr-defined]
    assert 1 <= len(begun) <= 2 * THREADS + 1


def test_a_failure_in_a_part_ends_all(connection: Any, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    days = make_days(shop, 20)
    rollup = roll_up(connection, shop)
    files = sorted((file.first_ns, file.url) for _table, file in rollup.source.days[days[0]])
    Path(files[7][1]).unlink()
    made = rollup.rows(days)
    for _ in range(7):
        next(made)
    with pytest.raises(duckdb.IOException, match=Path(files[7][1]).name):
        next(made)
