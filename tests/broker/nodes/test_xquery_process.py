"""The process that evaluates queries: how long it lives."""

from __future__ import annotations

import mmap

import psutil
import pytest

from qmf.broker.nodes.xquery_process import QueryProcess, XQueryResult

pytest.importorskip("saxonche")


def test_it_stays_however_much_memory_its_parent_has_used() -> None:
    use_memory(600 * 1024 * 1024)
    queries = QueryProcess()
    try:
        before = set(psutil.Process().children())
        assert queries.evaluate(["//b"], {}, b"<b/>") == [XQueryResult.YES]
        (process,) = set(psutil.Process().children()) - before
        assert queries.evaluate(["//b"], {}, b"<a/>") == [XQueryResult.NO]
        assert set(psutil.Process().children()) - before == {process}
    finally:
        queries.close()


def use_memory(size: int) -> None:
    """Use so much memory, and give it back."""
    with mmap.mmap(-1, size) as memory:
        for page in range(0, size, mmap.PAGESIZE):
            memory[page] = 1
