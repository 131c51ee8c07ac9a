"""Roll-ups by DuckDB: the same rows as by plain Python, whatever the samples."""

from __future__ import annotations

import datetime
import random
from contextlib import closing
from decimal import Decimal
from typing import Any

import pytest
from pipeline import rollup_reference
from pipeline.shop import PACKAGE, TILL

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.rollup.members import number_members

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.duckdb_queries import connect
from qmf.pipeline.lake.arrow import arrow_table, columns_of
from qmf.pipeline.rollup.columns import coarser
from qmf.pipeline.rollup.rows import carry
from qmf.pipeline.rollup.windows import roll_up

TABLE = ClassVersion.from_schema(TILL)
COLUMNS = columns_of(RowKind.OBJECTS, TABLE)
MEMBERS = number_members([TABLE])
SECOND = 10**9

HUGE = (1 << 64) - 1
DECIMALS = {name for name, type in COLUMNS if type.value.startswith("decimal")}

Row = dict[str, Any]


def sample(seq: int, at: float, *, epoch: int | None = 1, name: str = "one", run: str = "r", **values: Any) -> Row:
    """A sample; `at` in seconds."""
    return {
        "_run": run,
        "_seq": seq,
        "_ts": datetime.datetime.fromtimestamp(int(at), datetime.UTC),
        "_ts_ns": int(at) * SECOND,
        "_agent": "a",
        "_epoch": epoch,
        "_object": name,
        "_properties": False,
        "_statistics": True,
        **{key: Decimal(value) if key in DECIMALS and value is not None else value for key, value in values.items()},
    }


def make_rows(
    connection: Any,
    table: str,
    samples: list[Row],
    *,
    seconds: int,
    continued: bool,
    carried: str | None = None,
) -> None:
    """Make a table of the roll-up of samples."""
    cells = [tuple(row["_ts_ns"] // 1000 if name == "_ts" else row.get(name) for name, _ in COLUMNS) for row in samples]
    connection.register("samples", arrow_table(COLUMNS, cells))
    with roll_up(
        connection,
        "samples",
        MEMBERS,
        package=PACKAGE,
        name="till",
        seconds=seconds,
        continued=continued,
        carried=carried,
    ) as sql:
        assert sql is not None
        connection.execute(f"create temp table {table} as {sql}")


def fetch(connection: Any, sql: str) -> list[Row]:
    """The rows of a query."""
    found = connection.execute(sql)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found.fetchall()]


def duckdb_rows(samples: list[Row], *, seconds: int = 60, continued: bool = False) -> list[Row]:
    """The roll-up of samples, in the order of time."""
    with closing(connect()) as connection:
        connection.execute("set timezone = 'UTC'")
        make_rows(connection, "rolled", samples, seconds=seconds, continued=continued)
        return fetch(connection, "from rolled")


def any_samples(
    chance: random.Random, name: str, *, sparse: bool = True, large: bool = True, backward: bool = True
) -> list[Row]:
    """Samples of an object in some minutes: restarts, missing values, two runs, and clocks that are set back."""
    rows = []
    at = 0
    for seq in range(chance.randint(1, 40)):
        at = max(0, at + chance.choice([0 if backward else 2, 1, 5, 20, 20, -30 if backward else 9]))
        rows.append(
            sample(
                seq + 1,
                at,
                epoch=chance.choice([1, 1, 1, 2, None]),
                name=name,
                run=chance.choice(["r", "r", "s"]),
                _create_ns=chance.choice([0, 5, 5, 6, None]),
                _delete_ns=chance.choice([0, 0, 0, 0, None, 7]),
                sales=chance.choice(
                    [0, HUGE if large else 7, None if sparse else 3, *chance.choices(range(1000), k=2)]
                ),
                queue=chance.choice([None if sparse else 5, chance.randrange(99)]),
                queueHigh=chance.randrange(99, 200),
                queueLow=0,
                serviceCount=chance.randrange(0 if sparse else 1, 3),
                serviceMin=1,
                serviceMax=chance.randrange(9, 99),
                serviceAvg=chance.randrange(2, 9),
            )
        )
    chance.shuffle(rows)
    return rows


def check(samples: list[Row], found: list[Row], *, seconds: int, continued: bool) -> None:
    """Compare a roll-up with the reference."""
    expected = rollup_reference.rolled_up(samples, MEMBERS, seconds, continued=continued)
    rows = {
        (int(row["window_start"].timestamp()) * SECOND, row["agent"], row["object"], row["member"]): row
        for row in found
    }
    assert len(rows) == len(found)
    assert rows.keys() == expected.keys()
    for key, wanted in expected.items():
        for column, value in wanted.items():
            # Doubles may differ in their last digits: sums of them depend on the order.
            right = pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value
            assert rows[key][column] == right, (key, column)


@pytest.mark.parametrize("continued", [False, True])
@pytest.mark.parametrize("seconds", [10, 60, 86_400])
@pytest.mark.parametrize("sparse", [False, True])
def test_they_are_those_of_plain_python(sparse: bool, seconds: int, continued: bool) -> None:
    chance = random.Random(random.randrange(10**6))  # pytest-randomly prints the seed
    large = chance.random() < 0.5
    samples = [row for n in range(60) for row in any_samples(chance, str(n), sparse=sparse, large=large)]
    if chance.random() < 0.5:
        samples = [{**row, "_epoch": len(row["_object"]), "_delete_ns": 0, "_create_ns": 5} for row in samples]
    check(samples, duckdb_rows(samples, seconds=seconds, continued=continued), seconds=seconds, continued=continued)


@pytest.mark.parametrize("continued", [False, True])
def test_larger_windows_of_smaller_ones_are_those_of_the_samples(continued: bool) -> None:
    chance = random.Random(random.randrange(10**6))
    samples = [row for n in range(60) for row in any_samples(chance, str(n), backward=False)]
    with closing(connect()) as connection:
        connection.execute("set timezone = 'UTC'")
        make_rows(connection, "fine", samples, seconds=10, continued=continued)
        connection.execute(f"create temp table middle as {coarser('fine', 60)}")
        found = fetch(connection, coarser("middle", 3600))
    check(samples, found, seconds=3600, continued=continued)


@pytest.mark.parametrize("continued", [False, True])
def test_what_was_known_before_is_as_good_as_the_samples_before(continued: bool) -> None:
    chance = random.Random(random.randrange(10**6))
    samples = [row for n in range(60) for row in any_samples(chance, str(n), backward=False)]
    early, late = ([row for row in samples if (row["_ts_ns"] >= 120 * SECOND) is later] for later in (False, True))
    with closing(connect()) as connection:
        connection.execute("set timezone = 'UTC'")
        make_rows(connection, "first", early, seconds=60, continued=continued)
        connection.execute(f"create temp table known as {carry('first', None, 0)}")
        make_rows(connection, "second", late, seconds=60, continued=continued, carried="known")
        found = fetch(connection, "select * from first union all select * from second")
    check(samples, found, seconds=60, continued=continued)


def test_the_step_from_the_window_before_is_in_the_row() -> None:
    # A counter that grows by 10 a second, published every 60 s: each window has one sample.
    rows = [sample(n, 60 * n, sales=600 * n) for n in range(4)]
    found = [row for row in duckdb_rows(rows) if row["member"] == "sales"]
    assert [(row["delta"], row["rate"]) for row in found] == [(0, None), (600, 10), (600, 10), (600, 10)]


def test_a_rate_is_the_growth_over_the_time_that_it_covers() -> None:
    # 10 a second, sampled at 0, 50 and 70 s.
    rows = [sample(n, at, sales=10 * at) for n, at in enumerate((0, 50, 70))]
    found = [row for row in duckdb_rows(rows) if row["member"] == "sales"]
    assert [(row["delta"], row["rate"]) for row in found] == [(500, 10), (200, 10)]


def test_the_mean_of_a_gauge_counts_each_value_as_long_as_it_held() -> None:
    # Agents publish changes only: 100 for most of the minute, and 0 at its end.
    rows = [sample(1, -30, queue=100), sample(2, 56, queue=0), sample(3, 58, queue=50), sample(4, 59, queue=30)]
    *_, found = (row for row in duckdb_rows(rows) if row["member"] == "queue")
    assert found["mean"] == pytest.approx((56 * 100 + 2 * 0 + 50 + 30) / 60)
    assert found["sample_mean"] == pytest.approx(80 / 3)
    assert (found["before"], found["before_ns"]) == (100, -30 * SECOND)


def test_a_value_does_not_hold_over_a_restart_or_the_end_of_the_object() -> None:
    restarted = [sample(1, 0, queue=100), sample(2, 90, queue=10, epoch=2)]
    *_, found = (row for row in duckdb_rows(restarted) if row["member"] == "queue")
    assert (found["mean"], found["before"]) == (10, None)
    deleted = [sample(1, 0, queue=100), sample(2, 10, queue=50, _delete_ns=10), sample(3, 40, queue=10)]
    (found,) = (row for row in duckdb_rows(deleted) if row["member"] == "queue")
    assert found["mean"] == pytest.approx((10 * 100 + 20 * 10) / 30)


def test_a_sample_of_long_ago_is_not_the_one_before() -> None:
    rows = [sample(1, 0, sales=5), sample(2, 8 * 86_400, sales=25), sample(3, 15 * 86_400 + 5, sales=27)]
    found = [row for row in duckdb_rows(rows) if row["member"] == "sales"]
    assert [(row["delta"], row["before_ns"]) for row in found] == [(0, None), (0, None), (2, 8 * 86_400 * SECOND)]


def test_samples_without_any_counter_among_others() -> None:
    rows = [sample(n, n, sales=None if n % 2 else n, queue=1) for n in range(1, 11)]
    (sales,) = [row for row in duckdb_rows(rows) if row["member"] == "sales"]
    assert (sales["samples"], sales["delta_exact"], sales["first_ns"]) == (5, 8, 2 * SECOND)


def test_a_clock_that_was_set_back() -> None:
    # Received as 10, 20, 30, with times that say 20, 30, 10.
    rows = [sample(1, 30, sales=10), sample(2, 10, sales=20), sample(3, 20, sales=30)]
    (sales,) = [row for row in duckdb_rows(rows) if row["member"] == "sales"]
    assert (sales["delta_exact"], sales["resets"], sales["first_exact"], sales["last_exact"]) == (20, 0, 20, 10)


@pytest.mark.parametrize("values", [{}, {"_create_ns": 5}, {"serviceCount": 1, "serviceAvg": 7}])
def test_samples_of_one_time_count_in_the_order_of_arrival(values: Row) -> None:
    rows = [sample(seq, 10, sales=sales, **values) for seq, sales in ((3, 30), (1, 10), (4, 40), (2, 20))]
    (sales,) = [row for row in duckdb_rows(rows) if row["member"] == "sales"]
    assert (sales["first"], sales["last"], sales["delta_exact"], sales["resets"]) == (10, 40, 30, 0)
    assert (sales["first_epoch"], sales["last_epoch"], sales["last_created_ns"]) == (1, 1, values.get("_create_ns"))


def test_samples_that_came_late_are_no_restarts() -> None:
    # A counter that grew from 10 to 40, whose samples came as those of 10, 30, 20 and 40 s.
    rows = [sample(seq, at, sales=at) for seq, at in enumerate((10, 30, 20, 40))]
    (sales,) = [row for row in duckdb_rows(rows) if row["member"] == "sales"]
    assert (sales["delta_exact"], sales["resets"]) == (30, 0)


@pytest.mark.parametrize(
    ("first", "then", "expected"),
    [
        ({"_delete_ns": 9}, {}, (25, 1)),
        ({"_create_ns": 1}, {"_create_ns": 2}, (25, 1)),
        ({"_create_ns": 1, "_delete_ns": 9}, {"_create_ns": 2}, (25, 1)),
        ({"_create_ns": 1}, {"_create_ns": 1}, (15, 0)),
        ({"_create_ns": 1}, {}, (15, 0)),
        ({"_create_ns": 1, "_delete_ns": 9}, {"_create_ns": 1}, (15, 0)),  # the end is repeated, or a sample late
    ],
)
@pytest.mark.parametrize("seconds", [10, 60])
def test_an_object_that_is_created_again_counts_from_zero(
    first: Row, then: Row, expected: tuple[int, int], seconds: int
) -> None:
    rows = [sample(1, 1, sales=10, **first), sample(2, 31, sales=25, **then)]
    for continued in (False, True):
        *_, sales = (row for row in duckdb_rows(rows, seconds=seconds, continued=continued) if row["member"] == "sales")
        assert (sales["delta_exact"], sales["resets"]) == expected
    # An agent that only forwards counters creates its objects again when it starts again.
    rows[1]["_epoch"] = 2
    *_, sales = (row for row in duckdb_rows(rows, seconds=seconds, continued=True) if row["member"] == "sales")
    assert (sales["delta_exact"], sales["resets"]) == (15, 0)


def test_windows_before_1970_and_at_their_edges() -> None:
    rows = [sample(1, -61, sales=1), sample(2, -60, sales=2), sample(3, -1, sales=3), sample(4, 0, sales=4)]
    found = {
        (row["window_start"].timestamp(), row["window_end"].timestamp()): row["samples"]
        for row in duckdb_rows(rows)
        if row["member"] == "sales"
    }
    assert found == {(-120, -60): 1, (-60, 0): 2, (0, 60): 1}


def test_no_samples() -> None:
    with closing(connect()) as connection:
        connection.execute(
            "create table nothing as select '' as _agent, '' as _object, '' as _run, 1 as _epoch, 0 as _create_ns, "
            "0 as _delete_ns, false as _statistics"
        )
        with roll_up(connection, "nothing", MEMBERS, package=PACKAGE, name="till", seconds=60, continued=False) as rows:
            assert rows is None
