"""The lake: Delta tables of recorded rows, one for each class. Nothing here knows Spark.

`delta_lake` is a lake with its tables and classes, `lake_table` one table, `table_files` and `table_log` its files,
`feed` follows tables; `table_paths` says where tables lie. `columns` describes the columns of a class, `row_columns`
those of every row; `arrow` makes Arrow schemas and tables, `file_rows` and `row_source` read rows; `runs` chooses among
recorders of the same agents; `maintenance` combines files and removes old ones, `checking` finds and repairs damage.
"""

from __future__ import annotations
