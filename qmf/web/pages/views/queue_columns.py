"""The columns of queues by default: is a queue in order, what waits in it, how much flows."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.schema import TYPES, ClassSchema
from qmf.views.broker_fields import QUEUE_COMPUTED, ComputedField, is_queue
from qmf.views.fields import ObjectField
from qmf.web.pages.views.value_columns import PageColumn, rate_column

#: States that want somebody's attention, with the CSS class of their cells.
_MARKS = {"flow stopped": "warn", "no consumer": "notice"}


def queue_columns(schemas: Sequence[ClassSchema]) -> list[PageColumn]:
    """The columns that are shown of queues if nothing was chosen, besides the name; empty for other classes.

    Args:
        schemas: versions of a class.
    """
    if not any(map(is_queue, schemas)):
        return []
    return [
        *map(_computed_column, QUEUE_COMPUTED),
        _rate("in", "msgTotalEnqueues", "Messages put on the queue per second"),
        _rate("out", "msgTotalDequeues", "Messages removed from the queue per second, for any reason"),
    ]


def _computed_column(item: ComputedField) -> PageColumn:
    return PageColumn(item.field, lambda obj: item.read(obj.values), marks=_MARKS)


def _rate(title: str, counter: str, desc: str) -> PageColumn:
    return rate_column(ObjectField(counter, TYPES["uint64"], "message"), f"{title}/s", desc, title)
