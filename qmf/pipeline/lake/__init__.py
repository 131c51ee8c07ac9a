"""The lake: a folder of Parquet files with a transaction log. Nothing here knows Spark.

`columns` describes the columns of a class, `row_columns` those of every row; `layout` has the paths, `transaction_log`
the entries of the log; `lake` reads and writes both; `maintenance` compacts files and removes old ones; `arrow` makes
Arrow schemas and tables.
"""

from __future__ import annotations
