"""What the bus is like now, kept once for all browsers: agents, classes, followed objects, events, values over time.

Nothing here knows a page: pages lease what they show, and give it back when the browser leaves.
"""

from __future__ import annotations
