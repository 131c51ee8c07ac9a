"""What executors make of batches, without Spark."""

from __future__ import annotations

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.pipeline import PipelineError
from qmf.pipeline.runners.spark_tasks import DATA, SHARE, VERSION, divided_batches, joined_batches

SCHEMA = pa.schema([("agent", pa.string()), ("number", pa.int64()), ("value", pa.decimal128(20, 0))])

ROWS = st.tuples(st.sampled_from(["a", "b", "c", None]), st.integers(0, 3) | st.none(), st.integers(0, 2**64))


@given(st.lists(st.lists(ROWS, min_size=1, max_size=20), max_size=4), st.integers(1, 5))
def test_rows_with_the_same_key_are_in_one_share_and_none_is_lost(
    batches: list[list[tuple[object, ...]]], shares: int
) -> None:
    made = [
        pa.RecordBatch.from_arrays(
            [pa.array(column, field.type) for column, field in zip(zip(*rows, strict=True), SCHEMA, strict=True)],
            schema=SCHEMA,
        )
        for rows in batches
    ]
    divided = list(divided_batches(SCHEMA, ("agent", "number"), shares, iter(made)))
    shared: dict[tuple[object, ...], set[int]] = {}
    found: list[tuple[object, ...]] = []
    for batch in divided:
        for at in range(batch.num_rows):
            one = batch.slice(at, 1)
            (number,) = one.column(SHARE).to_pylist()
            assert 0 <= number < shares
            for joined in joined_batches(SCHEMA, iter([one])):
                rows = [tuple(row.values()) for row in joined.to_pylist()]
                found += rows
                for row in rows:
                    shared.setdefault(row[:2], set()).add(number)
    assert all(len(numbers) == 1 for numbers in shared.values())
    assert sorted(map(repr, found)) == sorted(repr(tuple(row.values())) for batch in made for row in batch.to_pylist())
    assert all(batch.schema.names == [SHARE, VERSION, DATA] for batch in divided)


def test_executors_with_other_versions_of_duckdb_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = pa.record_batch([["a"], [1], pa.array([2], SCHEMA.field("value").type)], schema=SCHEMA)
    divided = list(divided_batches(SCHEMA, ("agent",), 2, iter([batch])))
    ours = duckdb.__version__
    monkeypatch.setattr(duckdb, "__version__", "9.8.7")
    with pytest.raises(PipelineError, match=f"DuckDB {ours} and 9.8.7: they need the same version"):
        list(joined_batches(SCHEMA, iter(divided)))
