"""The Spark session of the pipeline's tests, for pages with jobs on Spark."""

from __future__ import annotations

from pipeline.conftest import spark

__all__ = ["spark"]
