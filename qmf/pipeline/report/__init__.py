"""The report: one self-contained HTML page about a time range of a lake.

`time_range` parses the options, `collect` and `tables` query Spark, `model` holds the results, `plots` draws them as
`svg`, `page` makes the page. Only `collect` and `tables` import Spark; `svg` imports matplotlib, `page` Jinja.
"""

from __future__ import annotations
