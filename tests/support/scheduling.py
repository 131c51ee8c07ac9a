"""Which process runs which tests, where several do (pytest-xdist).

Each process gets the next test that waits, but tests with Spark run in two of them, for about as long: a session takes
a quarter of a minute to get going, so more of them cost more than they bring.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

#: Folders and files with Spark, by the session that they share. The larger group begins first.
_SESSIONS = {
    "Spark 1": ("tests/pipeline/correlate/", "tests/pipeline/rollup/"),
    "Spark 2": (
        "tests/pipeline/audit/",
        "tests/pipeline/report/",
        "tests/pipeline/spark/",
        "tests/pipeline/test_cluster.py",
        "tests/pipeline/test_frames.py",
    ),
}


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives out tests one by one, and those that share a session together."""

    def _split_scope(self, nodeid: str) -> str:
        return next((name for name, paths in _SESSIONS.items() if nodeid.startswith(paths)), nodeid)
