"""Limits per client."""

from __future__ import annotations

import pytest

from qmf.web.access.limits import CountLimit
from qmf.web.problems import Problem


def test_so_many_at_a_time() -> None:
    limit = CountLimit(2, "streams")
    first = limit.acquire("user ann")
    with limit.one("user ann"), limit.one("user bob"):
        assert limit.open == 3
        with pytest.raises(Problem, match="user ann has 2 streams already"):
            limit.acquire("user ann")
    first()
    first()
    assert limit.open == 0
