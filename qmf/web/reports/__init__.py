"""Reports about recorded times, as `qmf-pipeline report` makes them.

`asking` says what a client may ask for, `making` runs the command as a process of its own, `routes` has the route. Only
`making` knows the command.
"""

from __future__ import annotations
