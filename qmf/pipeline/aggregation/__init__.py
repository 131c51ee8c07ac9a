"""Samples of objects as one row per object, time window and member, computed in this process by DuckDB.

Neither Spark nor Java is needed here. `members` has the numbers that a class has, `columns` the table and how larger
windows are made of smaller ones, `statements` and `rows` the SQL, `windows` the roll-up of samples of a class, `source`
the samples of a class in a lake, `day` the roll-up of its days one after the other, `job` the work of the command on a
lake in a local folder.

`partials` merges aggregates of a stream's newest samples (`stream_partials`) to those of larger windows, as values of
all classes together (`families`).
"""
