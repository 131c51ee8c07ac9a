"""Samples of objects as one row per object, time window and member, computed by DuckDB.

Most of it needs neither Spark nor Java. `members` has the numbers that a class has, `columns` the table and how larger
windows are made of smaller ones, `statements` and `rows` the SQL, `windows` the roll-up of samples of a class,
`class_rollup` that of days in several threads, `source` the samples of a class in a lake, `job` and `stream` the work
of the command.

`stream_memory` has a stream's newest samples, as values of all classes together. `tasks` are the pieces of work that a
runner has done, in the process or on Spark. `frames` rolls up samples that are in a frame of Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.pipeline.rollup.frames import coarser, rollup
else:
    # Only what runs on Spark needs pyspark.
    __getattr__, __dir__ = lazy_exports(__name__, {"qmf.pipeline.rollup.frames": "coarser rollup"})

__all__ = ["coarser", "rollup"]
