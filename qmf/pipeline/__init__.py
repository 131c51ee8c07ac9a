"""The data pipeline: records a bus in a lake of Parquet files, and processes the lake with Spark.

`lake` owns the files, `recording` writes them, `spark` gives Spark access to them, as `frames.Frames` and as the data
source `qmf`. `rollup`, `correlate`, `audit` and `report` are the jobs; `commands` and `cli` are `qmf-pipeline`.

The pipeline is a console: it never imports the agent's side, except to publish alerts. pyarrow and pyspark are imported
when they are needed, never by importing this package.
"""

from __future__ import annotations

from qmf.pipeline.errors import LakeError, MissingExtraError, PipelineError
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.recording.lake_recorder import LakeRecorder, RecorderCounts

__all__ = ["Lake", "LakeError", "LakeRecorder", "MissingExtraError", "PipelineError", "RecorderCounts"]
