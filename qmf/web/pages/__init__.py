"""The web console: pages for people. `mount` adds them to an application.

`live` keeps what the bus is like now, once for all browsers; `views` makes values of it that say what a page shows, and
reads addresses; `screens` puts these into browsers, and is the only part that knows NiceGUI.
"""

from __future__ import annotations

from qmf.web.pages.mounting import mount

__all__ = ["mount"]
