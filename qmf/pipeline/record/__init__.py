"""Recording: the console that writes what it receives into a lake.

`conversion` turns values into cells, `buffers` collects the rows of a commit, `recorder` receives and commits, `spool`
runs a recorder beside a streaming query.
"""

from __future__ import annotations
