"""The bus in browsers and over HTTP: a web console, REST for management and for messages, metrics.

`qmf-web` is the command (`qmf.web.cli`). A program that serves it itself makes the ASGI application with
`create_application(WebOptions(...))` and runs it in a server of its choice; the lifespan of the application opens and
closes the connection to the broker. Importing it starts nothing, and loads none of the extra's libraries until then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf.web.application import create_application
    from qmf.web.options import WebLimits, WebOptions
    from qmf.web.problems import Problem
    from qmf.web.scopes import Caller, Scope
    from qmf.web.services import WebServices
else:
    __getattr__, __dir__ = lazy_exports(
        __name__,
        {
            "qmf.web.application": "create_application",
            "qmf.web.options": "WebLimits WebOptions",
            "qmf.web.problems": "Problem",
            "qmf.web.scopes": "Caller Scope",
            "qmf.web.services": "WebServices",
        },
    )

__all__ = ["Caller", "Problem", "Scope", "WebLimits", "WebOptions", "WebServices", "create_application"]
