"""The session that the pipeline runs on, and Spark's access to lakes and buses.

Importing this package while a session is active registers the data source `qmf` with that session.
"""

from __future__ import annotations

from pyspark.sql import SparkSession

from qmf.pipeline.spark.session import register, session

__all__ = ["register", "session"]

_active = SparkSession.getActiveSession()
if _active is not None:
    register(_active)
