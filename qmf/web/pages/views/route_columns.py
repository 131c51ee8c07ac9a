"""The columns of routes between brokers by default: are they up, how far they are behind, what they transfer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from qmf.schema import ClassSchema
from qmf.views.broker_fields import is_route
from qmf.web.pages.views.value_columns import RATE, PageColumn

#: States that want somebody's attention, with the CSS class of their cells.
_MARKS = {"Waiting": "warn", "Failed": "warn", "Connecting": "notice"}
_SHOWN = ("place", "state", "backlog", "behind", f"transfers{RATE}", "lastError", "since")


def route_columns(schemas: Sequence[ClassSchema], columns: Mapping[str, PageColumn]) -> list[PageColumn]:
    """The columns that are shown of routes if nothing was chosen, besides the name; empty for other classes.

    Args:
        schemas: versions of a class.
        columns: those that it has, by name.
    """
    if not any(map(is_route, schemas)):
        return []
    found = [columns[name] for name in _SHOWN if name in columns]
    return [attrs.evolve(item, marks=_MARKS) if item.name == "state" else item for item in found]
