"""The process in each executor whose copies are Spark's Python workers: it has imported what tasks need.

Spark starts a worker for each function of a task and each processor. A worker that begins with the library's own daemon
imports pyarrow, DuckDB, deltalake and the pipeline itself, which takes a second of a processor each time.
"""

from __future__ import annotations

import gc
from importlib import import_module

from pyspark.daemon import manager

#: What tasks use; what is missing is reported by the task that needs it.
_MODULES = (
    "pyarrow.parquet",
    "pyarrow.dataset",
    "duckdb",
    "deltalake",
    "qmf.pipeline.audit.tables",
    "qmf.pipeline.correlate.batch",
    "qmf.pipeline.lake.row_files",
    "qmf.pipeline.maintenance.checking",
    "qmf.pipeline.rollup.tasks",
)


def main() -> None:
    """Import, and start workers until Spark ends the process."""
    for name in _MODULES:
        try:
            import_module(name)
        except ImportError:
            continue
    # Workers collect garbage after each task: what is here already is none.
    gc.freeze()
    manager()


if __name__ == "__main__":
    main()
