"""Roll-ups on Spark: the work of `qmf.pipeline.aggregation`, done by the executors.

An executor runs the same statements on the same columns, so the rows are the same. `tasks` divides a lake into pieces
of work, `job` is the command's work, `frames` rolls up samples that are in a frame of Spark.
"""

from __future__ import annotations

from qmf.pipeline.rollup.frames import coarser, rollup

__all__ = ["coarser", "rollup"]
