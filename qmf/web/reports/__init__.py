"""Reports about recorded times, as `qmf-pipeline report` makes them.

`making` says what a client may ask for, and runs the command as a process of its own, which only it knows; `routes` has
the route.
"""

from __future__ import annotations
