"""The report: one self-contained HTML page about a time range of a lake.

`time_range` parses the options, `source` reads the lake, `collect` makes of it what `model` holds, `plots` draws that
by matplotlib, `page` makes the page by Jinja.
"""

from __future__ import annotations
