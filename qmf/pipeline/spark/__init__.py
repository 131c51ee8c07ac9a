"""For people who write PySpark: the session that the pipeline runs on, and the jobs as functions of frames.

Importing this package while a session is active registers the data source `qmf` with that session.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from qmf.pipeline.spark.frames import alerts, lives, rollups, rows, samples, views
from qmf.pipeline.spark_access.session import register, session

__all__ = ["alerts", "lives", "register", "rollups", "rows", "samples", "session", "views"]

_active = SparkSession.getActiveSession()
if _active is not None:
    register(_active)
