"""The data pipeline: records a bus in a lake of Delta tables, and processes the lake in this process or with Spark.

`lake` owns the files, `record` writes them, `spark_access` lets Spark read them, as the data source `qmf`. `rollup`,
`correlate`, `audit` and `report` are the jobs, and `spark` has them as functions of frames. `commands` and `cli`
are `qmf-pipeline`.

The pipeline is a console: it never imports the agent's side, except to publish alerts. pyarrow and pyspark are imported
when they are needed, never by importing this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.pipeline.errors import LakeError, MissingExtraError, PipelineError
    from qmf.pipeline.lake.delta_lake import DeltaLake
    from qmf.pipeline.record.lake_recorder import LakeRecorder, RecorderCounts
else:
    # Spark starts Python for each stream: it loads the lake, and no console.
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.pipeline.errors": "LakeError MissingExtraError PipelineError",
            "qmf.pipeline.lake.delta_lake": "DeltaLake",
            "qmf.pipeline.record.lake_recorder": "LakeRecorder RecorderCounts",
        },
    )

__all__ = ["DeltaLake", "LakeError", "LakeRecorder", "MissingExtraError", "PipelineError", "RecorderCounts"]
