"""Audit: who did what, what was when, and since when it isn't any more.

Five tables, made in two steps of functions from frame to frame. `parts` turns rows of a lake into *parts*: small rows
that can be added to others in any order, twice even, without changing what comes out. The tables (`calls`,
`history`, `lives`, `availability`, and the events themselves) are made of all parts by functions that read nothing
else. A batch makes the parts of the whole lake; a stream keeps those that it has and adds those of new files: so
both give the same tables, whatever came late and whatever is read again. `job` does the reading and writing.

Importing this package imports no Spark; its modules do.
"""

from __future__ import annotations
