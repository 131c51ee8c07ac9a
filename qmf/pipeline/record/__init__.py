"""Recording: the console that writes what it receives into a lake.

`buffers` turns values into cells and collects the rows of a commit, `notifications` makes rows of what arrives,
`lake_recorder` commits them, also beside a streaming query.
"""

from __future__ import annotations
