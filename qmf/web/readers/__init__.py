"""Who reads what: a console for each caller from whom rules withhold something, and what stands on it.

`ReadableConsole` is the only place where something is withheld. Lists, counts, streams, metrics, pages, search and the
texts of errors are made from what it shows, so nothing else has to know about rights.
"""

from __future__ import annotations
