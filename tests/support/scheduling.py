"""Which process runs which tests, where several do (pytest-xdist).

Each process gets the next test that waits, but tests with Spark run in three of them, for about as long: a session
takes a quarter of a minute to get going, so more of them cost more than they bring. Long tests begin first, so that
none is left alone at the end.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

#: Folders and files with Spark or a browser, by the session that they share.
_SESSIONS = {
    "Browser": ("tests/web/pages/screens/test_screens_browser.py",),
    "Spark 1": (
        "tests/docs/test_pipeline.py",
        "tests/pipeline/rollup/test_frames.py",
        "tests/pipeline/rollup/test_spark_job.py",
    ),
    "Spark 2": (
        "tests/docs/test_pipeline_correlate.py",
        "tests/pipeline/audit/test_job.py",
        "tests/pipeline/spark/test_data_source.py",
        "tests/pipeline/spark/test_lake_stream_two_recorders.py",
        "tests/pipeline/spark/test_sinks.py",
        "tests/pipeline/test_spark_cluster.py",
    ),
    "Spark 3": (
        "tests/pipeline/correlate/test_batch.py",
        "tests/pipeline/correlate/test_spark_job.py",
        "tests/pipeline/correlate/test_stream.py",
        "tests/pipeline/report/test_collect.py",
        "tests/pipeline/test_frames.py",
    ),
}

#: Folders and files with other long tests.
_LONG = (
    "tests/codegen/test_python_invented.py",
    "tests/docs/",
    "tests/pipeline/correlate/test_correlate_end_to_end.py",
    "tests/pipeline/record/test_lake_recorder.py",
    "tests/e2e/",
    "tests/examples/",
    "tests/shell/terminal/",
)

#: All these.
NAMED = (*(path for paths in _SESSIONS.values() for path in paths), *_LONG)


def order(nodeid: str) -> int:
    """By which tests are sorted: those with Spark, other long ones, the rest."""
    if any(nodeid.startswith(paths) for paths in _SESSIONS.values()):
        return 0
    return 1 if nodeid.startswith(_LONG) else 2


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives out tests one by one, and those that share a session together."""

    def __init__(self, config: Any, log: Any) -> None:
        config.option.loadscopereorder = False  # it would sort by the number of tests
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return next((name for name, paths in _SESSIONS.items() if nodeid.startswith(paths)), nodeid)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Forget a test that has ended: the base class would count all of them each time."""
        super().mark_test_complete(node, item_index, duration)
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node].get(scope, {False: False}).values()):
            del self.assigned_work[node][scope]
