"""The process in each executor whose copies are Spark's Python workers: it has imported what tasks need.

Spark starts a worker for each processor. A worker that begins with the library's own daemon imports pyarrow, DuckDB,
deltalake and the pipeline itself, which takes a second of a processor each time.
"""

from __future__ import annotations

import gc
from contextlib import nullcontext
from importlib import import_module

from pyspark.daemon import manager

from qmf.pipeline.without_pandas import without_pandas

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
    "qmf.pipeline.runners.spark_tasks",
)


def main(*, pandas: bool = True) -> None:
    """Import, and start workers until Spark ends the process.

    Without `pandas`, tasks cannot convert rows from and to pandas. Arrow imports it with its datasets where it is
    installed, which takes a third of the time of all imports.
    """
    with nullcontext() if pandas else without_pandas():
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
