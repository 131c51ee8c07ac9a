"""The data pipeline: records what the bus says in a lake of Parquet files, and reads it back with Spark.

`members` says which columns a class has, `cells` turns values into cells, `layout` and `lake` own the files, `buffers`
and `recorder` fill them, `upkeep` compacts and ages them; `cli` is `qmf-pipeline`. The Spark side starts in
`spark`: the data source `qmf`, and the jobs.

It is a console: it never imports the agent's side, except to publish alerts. pyarrow and pyspark are imported when
they are needed, never by importing this package.
"""

from __future__ import annotations

from qmf.pipeline.errors import LakeError, MissingExtraError, PipelineError
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.recording.recorder import Recorder, RecorderCounts

__all__ = ["Lake", "LakeError", "MissingExtraError", "PipelineError", "Recorder", "RecorderCounts"]
