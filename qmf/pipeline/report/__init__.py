"""The report: one HTML page about a time range of a lake, with everything in it that it needs.

`spans` reads what the user wants, `collect` asks Spark for it, `model` is what comes out, `plots` draws it, `page`
makes the page. Spark is imported by `collect` alone, matplotlib by `plots`, Jinja by `page`.
"""

from __future__ import annotations
