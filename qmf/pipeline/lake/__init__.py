"""The lake: Delta tables of recorded rows, one for each class. Nothing here knows Spark.

`delta_lake` is a lake with its tables and classes, `lake_table` one table, `table_files` and `table_log` its files,
`feed` follows tables; `location` says where they lie. `columns` describes the columns of rows and of classes,
`arrow` makes Arrow schemas and tables, `file_rows` and `row_source` read rows; `runs` chooses among recorders of the
same agents; `maintenance` combines files and removes old ones.

Functions and methods raise `LakeError` for every failure of the file system or of an object store, and for files that
cannot be read; their documentation names other causes.
"""

from __future__ import annotations
