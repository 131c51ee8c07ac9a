"""What people ask of a queue, made from a broker's statistics: is it in order, what waits in it, how much flows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmf.schema import TYPES, ClassSchema
from qmf.views.fields import ObjectField
from qmf.views.objects import ObjectView
from qmf.web.pages.views.value_columns import PageColumn, rate_column

_PACKAGE, _NAME = "org.apache.qpid.broker", "queue"
_COUNT = TYPES["uint64"]
_STATE = ObjectField(
    "state",
    TYPES["sstr"],
    desc="flow stopped: senders wait because the queue is almost full; redirected: new messages go to another queue; "
    "no consumer: messages wait and nobody receives; running: it has consumers; idle: neither messages nor consumers",
)
_READY = ObjectField("ready", _COUNT, "message", "Messages that wait for a consumer")
_UNACKNOWLEDGED = ObjectField(
    "unacknowledged",
    _COUNT,
    "message",
    "Messages that consumers hold. Of qpidd, which does not count them: messages that were acquired, and neither "
    "released nor removed since; too few after messages were moved",
)
_CONSUMERS = ObjectField("consumers", _COUNT, desc="Receivers of the queue")
#: States that want somebody's attention, with the CSS class of their cells.
_MARKS = {"flow stopped": "warn", "no consumer": "notice"}


def queue_columns(schemas: Sequence[ClassSchema]) -> list[PageColumn]:
    """The columns that are shown of queues if nothing was chosen, besides the name; empty for other classes.

    Args:
        schemas: versions of a class.
    """
    if not any(schema.package == _PACKAGE and schema.name.lower() == _NAME for schema in schemas):
        return []
    return [
        PageColumn(_STATE, _state, marks=_MARKS),
        PageColumn(_READY, _ready),
        PageColumn(_UNACKNOWLEDGED, _count_unacknowledged),
        PageColumn(_CONSUMERS, _consumers),
        _rate("in", "msgTotalEnqueues", "Messages put on the queue per second"),
        _rate("out", "msgTotalDequeues", "Messages removed from the queue per second, for any reason"),
    ]


def _rate(title: str, counter: str, desc: str) -> PageColumn:
    return rate_column(ObjectField(counter, _COUNT, "message"), f"{title}/s", desc, title)


def _number(values: Mapping[str, object], name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _consumers(obj: ObjectView) -> int | None:
    return _number(obj.values, "consumerCount")


def _count_unacknowledged(obj: ObjectView) -> int | None:
    values = obj.values
    counted = _number(values, "unackedMessages")
    acquires, removed = _number(values, "acquires"), _number(values, "msgTotalDequeues")
    if acquires is None or removed is None:
        return counted
    # Expired messages and those that a full ring drops are removed without having been acquired.
    never_acquired = sum(_number(values, name) or 0 for name in ("discardsTtl", "discardsRing"))
    return max(0, counted or 0, acquires - (_number(values, "releases") or 0) - (removed - never_acquired))


def _ready(obj: ObjectView) -> int | None:
    depth = _number(obj.values, "msgDepth")
    return None if depth is None else max(0, depth - (_count_unacknowledged(obj) or 0))


def _state(obj: ObjectView) -> str | None:
    values = obj.values
    consumers = _consumers(obj)
    if values.get("flowStopped"):
        return "flow stopped"
    if values.get("redirectSource"):
        return "redirected"
    if consumers is None:
        return None
    if consumers:
        return "running"
    return "no consumer" if _number(values, "msgDepth") else "idle"
