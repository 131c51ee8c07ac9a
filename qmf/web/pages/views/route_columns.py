"""The columns of what forwards messages, by default: is it up, how far is it behind, what does it transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from qmf.schema import ClassSchema
from qmf.views.broker_fields import FEDERATION_PACKAGE, FORWARDING_PACKAGE, QUEUE_LINK, RELAY, ROUTE
from qmf.web.pages.views.value_columns import RATE, PageColumn

#: States that want somebody's attention, with the CSS class of their cells.
_MARKS = {"Waiting": "warn", "Failed": "warn", "Connecting": "notice", "Paused": "notice"}
#: By package and class.
_SHOWN: Mapping[tuple[str, str], Sequence[str]] = {
    (FEDERATION_PACKAGE, ROUTE): (
        *("place", "state", "backlog", "behind", f"transfers{RATE}", "credit", "lastError", "since"),
    ),
    (FORWARDING_PACKAGE, RELAY): (
        *("state", "waiting", "forwarded", f"forwarded{RATE}", "retried", "deadLettered", "lastError", "since"),
    ),
    (FORWARDING_PACKAGE, QUEUE_LINK): (
        *("source", "target", "mode", "state", "passed", f"passed{RATE}", "lastError", "since"),
    ),
}


def route_columns(schemas: Sequence[ClassSchema], columns: Mapping[str, PageColumn]) -> list[PageColumn]:
    """The columns that are shown of routes, relays and links between queues if nothing was chosen, besides the name;
    empty for other classes.

    Args:
        schemas: versions of a class.
        columns: those that it has, by name.
    """
    wanted = dict.fromkeys(name for item in schemas for name in _SHOWN.get((item.package, item.name.lower()), ()))
    found = [columns[name] for name in wanted if name in columns]
    return [attrs.evolve(item, marks=_MARKS) if item.name == "state" else item for item in found]
