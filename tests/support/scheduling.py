"""Which process runs which tests, where several do (pytest-xdist).

Each process gets what waits next. That is a module, whose tests share fixtures; a single test, where those of a module
take long; or all modules with Spark or a browser that share a session. There is one Spark session: it takes 7 s of the
processor to start and 10 s more for its first query, so more of them cost more than they bring. What takes long begins
first, so that none is left alone at the end.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadScopeScheduling

#: Folders and files with Spark or a browser, by the session that they share; what is read by one, once.
SESSIONS = {
    "Browser": (
        "tests/web/pages/screens/test_open_page_long_text.py::test_a_long_name_is_shown_cut_and_copied_in_full",
        "tests/web/pages/screens/test_screens_browser.py",
    ),
    "Spark": (
        "tests/docs/test_pipeline.py",
        "tests/docs/test_pipeline_correlate.py",
        "tests/docs/test_pipeline_pyspark.py",
        "tests/pipeline/audit/test_job.py::test_several_tasks_make_the_same_tables",
        "tests/pipeline/commands/test_running_places.py",
        "tests/pipeline/correlate/test_batch_on_spark.py",
        "tests/pipeline/correlate/test_task_stream.py::test_steps_on_spark_find_what_steps_in_the_process_find",
        "tests/pipeline/rollup/test_frames.py",
        "tests/pipeline/rollup/test_job_on_spark.py",
        "tests/pipeline/runners/",
        "tests/pipeline/spark/test_frames.py",
        "tests/pipeline/spark/test_sinks.py",
        "tests/pipeline/spark_access/test_data_source.py",
        "tests/pipeline/spark_access/test_data_source_classes.py",
        "tests/pipeline/spark_access/test_lake_stream_two_recorders.py",
    ),
}

#: Folders and files with other tests of which each takes long.
_LONG = (
    "tests/codegen/test_python_invented.py",
    "tests/docs/",
    "tests/e2e/",
    "tests/examples/",
    "tests/pipeline/correlate/test_correlate_end_to_end.py",
    "tests/pipeline/record/test_lake_recorder.py",
    "tests/pipeline/rollup/test_rollup_agreement.py",
    "tests/pipeline/rollup/test_stream_memory.py",
    "tests/pipeline/test_spark_cluster.py",
    "tests/shell/terminal/",
    "tests/web/messages/test_messages_kills.py",
)

#: Modules whose tests take some seconds together.
_EARLY = (
    "tests/codec/test_codec_hostile.py",
    "tests/console/test_broker_connection_faults.py",
    "tests/messaging/core/test_outgoing_link_exactly_once.py",
    "tests/pipeline/audit/test_job.py",
    "tests/pipeline/correlate/test_stream.py",
    "tests/pipeline/report/test_collect.py",
    "tests/pipeline/rollup/",
    "tests/protocol/test_decode_hostile.py",
    "tests/test_design.py",
    "tests/test_entry.py",
    "tests/tools/config/test_cli_cheat_sheets.py",
    "tests/web/management/test_routes.py",
    "tests/web/messages/",
    "tests/web/test_application_openapi.py",
)

#: All these.
NAMED = (*(path for paths in SESSIONS.values() for path in paths), *_LONG, *_EARLY)


def order(nodeid: str) -> int:
    """By which tests are sorted: those with Spark, other long ones, modules that take some seconds, the rest."""
    if any(nodeid.startswith(paths) for paths in SESSIONS.values()):
        return 0
    if nodeid.startswith(_LONG):
        return 1
    return 2 if nodeid.startswith(_EARLY) else 3


def unit(nodeid: str) -> str:
    """What a process gets together: tests of the same unit."""
    session = next((name for name, paths in SESSIONS.items() if nodeid.startswith(paths)), None)
    return session or (nodeid if nodeid.startswith(_LONG) else nodeid.partition("::")[0])


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Gives out tests unit by unit."""

    def __init__(self, config: Any, log: Any) -> None:
        config.option.loadscopereorder = False  # it would sort by the number of tests
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)

    def mark_test_complete(self, node: Any, item_index: int, duration: float = 0) -> None:
        """Forget a unit that has ended: the base class would count all of them each time."""
        super().mark_test_complete(node, item_index, duration)
        scope = self._split_scope(self.registered_collections[node][item_index])
        if all(self.assigned_work[node].get(scope, {False: False}).values()):
            del self.assigned_work[node][scope]
