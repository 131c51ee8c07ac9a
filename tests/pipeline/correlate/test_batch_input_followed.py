"""Rules that follow references: each file is read by one task, and the alerts are those of one task for all files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline.correlation import batch, options
from pipeline.lakes import Shop
from support.examples import examples

from qmf.pipeline.correlate.batch_input import BatchInput
from qmf.pipeline.lake.table_files import FilesByTable
from qmf.pipeline.runners.process import ProcessRunner

RULES = """
[between]
kind = "threshold"
class = "till"
value = "queue - nextRef.queue"
follow = {nextRef = "org.example.shop:till"}
above = 0
message = "{name} has {value:.0f} more than {nextRef.name}"

[plain]
kind = "threshold"
class = "till"
value = "queue"
above = 7
"""


def fill(shop: Shop, queues: Iterable[tuple[str, int, str | None]]) -> None:
    """A commit for each sample: its object, its value, and the object to which it refers."""
    for at, (name, queue, other) in enumerate(queues):
        shop.put((at, 0), object=name, queue=queue, name=name.title(), nextRef=other)


SAMPLES = [("one", 1, None), ("two", 5, "one"), ("one", 1, None), ("one", 8, None), ("two", 5, "one")] * 2


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


@pytest.mark.slow
def test_no_two_tasks_read_the_same_file(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(shop, SAMPLES)
    of = options(shop, RULES, late=0)
    expected = batch(of)
    assert {item.message for item in expected.alerts} >= {"Two has 4 more than One"}
    read: Counter[str] = Counter()
    rows = BatchInput.rows

    def count(self: BatchInput, files: FilesByTable) -> dict[str, Any]:
        read.update(file.path for own in files.values() for file in own)
        return rows(self, files)

    monkeypatch.setattr(BatchInput, "rows", count)
    found = batch(of, runner=ProcessRunner(task_rows=2))
    assert (found.alerts, found.counts) == (expected.alerts, expected.counts)
    # Once for the arrivals, once for the signals, and once as objects that are followed.
    assert len(read) >= len(SAMPLES)
    assert set(read.values()) == {3}


QUEUES = st.lists(
    st.tuples(st.sampled_from(["one", "two", "three"]), st.integers(0, 9), st.sampled_from(["one", "two", None])),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@examples(3)
@given(queues=QUEUES, rows=st.integers(1, 4))
def test_rows_are_compared_with_those_that_came_before_them_in_all_tasks(
    tmp_path_factory: pytest.TempPathFactory, queues: list[tuple[str, int, str | None]], rows: int
) -> None:
    shop = Shop(tmp_path_factory.mktemp("lake"))
    fill(shop, queues)
    of = options(shop, RULES, late=0)
    expected: dict[str, int] = {}
    alerts = 0
    for name, queue, other in queues:
        expected[name] = queue
        alerts += other in expected and queue > expected[str(other)]
    found = batch(of, runner=ProcessRunner(task_rows=rows))
    assert (found.alerts, found.counts) == (batch(of).alerts, found.counts)
    assert any(item.rule == "between" for item in found.alerts) == bool(alerts)
