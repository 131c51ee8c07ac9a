"""Rollups: samples of objects as one row per object, time window and member."""

from __future__ import annotations

from qmf.pipeline.rollup.windows import ROLLUP, coarser, rollup

__all__ = ["ROLLUP", "coarser", "rollup"]
