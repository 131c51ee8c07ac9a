"""Rollups: samples of objects as one row per object, time window and member. Steps are functions from frame to frame.

The values of a row depend on the member's style:

- counters: `delta` and `rate`. A value below the one before, or another epoch of the agent, is a restart: the counter
  continues from zero, and `resets` counts it. Only the steps between two samples of the window count; `coarser` adds
  the steps between windows. Samples count in the order of their times. Where that contradicts the order in which one
  recorder received them, the agent's clock was set back, and the order of arrival is used;
- gauges (DIRECT numbers): `first`, `last`, `low`, `high`, `mean`;
- hilos: the same, with `low` and `high` from the agent's own extremes;
- mmas: `low`, `high`, and the mean weighted by the number of samples behind each.

Whole numbers are exact in `*_exact` columns, decimal(38, 0); every number is there as a double, too. A row depends on
no other window, so late data changes one window only, streams work, and running a window again gives the same row.

`by_class` rolls up one class at a time, `by_value` many classes together; `coarse` makes larger windows from smaller
ones.
`counters` has the steps of counters, `schema` the table, `job` the command's work.
"""

from __future__ import annotations

from qmf.pipeline.rollup.by_class import rollup
from qmf.pipeline.rollup.coarse import coarser
from qmf.pipeline.rollup.schema import ROLLUP

__all__ = ["ROLLUP", "coarser", "rollup"]
