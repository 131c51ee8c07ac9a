"""Samples of objects as one row per object, time window and member, computed in this process by DuckDB.

The rows are those of `qmf.pipeline.rollup`, which computes them with Spark; neither Spark nor Java is needed here.
`members` has the numbers that a class has, `statements` the SQL, `windows` the roll-up of a day of a class, `job` the
work of the command on a lake in a local folder.
"""
