"""Reads a lake without Spark: the state of the bus at a time, values of an object over time, events, what to replay.

`files` is the only module that knows how a lake keeps its files, and runs queries on them in this process, by DuckDB.
`reader` is what programs use; `presence`, `states`, `series` and `classes` are its parts. `replaying` publishes
a recording on a bus again, from the rows of `replay_rows`.

Times are nanoseconds since 1970. Objects and events have the time of their agent's clock, agents the recorder's.
"""

from __future__ import annotations
