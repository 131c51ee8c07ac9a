"""The unsettled deliveries of a link, exchanged when it is attached, so that it can be resumed on another connection.

AMQP 1.0 has a field of the attach for this (part 2.6.13: `unsettled`), which proton neither writes nor reads. Peers of
this project exchange the same information as a link property, and only with a peer that offers the capability
`LINK_RESUMPTION`; docs/messaging.md describes the format. Part of `links.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import attrs
import proton

from qmf.bus.engine.values import Outcome

#: Capability of a connection whose peer keeps the state of links, and name of the link property.
LINK_RESUMPTION = "qmf.link-resumption"

#: Deliveries that a peer may list, and characters of the id of a link. These only protect memory.
MAX_LISTED = 100_000
MAX_ID = 100

#: Stands for a delivery without an outcome.
_NONE = "none"
_STATES: dict[str, Outcome | None] = {_NONE: None, **{outcome.value: outcome for outcome in Outcome}}


@attrs.frozen
class Resumption:
    """What one side of a link that can be resumed sends in its attach.

    Attributes:
        id: identifies the link over connections; chosen by the side that asks for the link, unique and unpredictable.
        unsettled: the deliveries that this side has not settled, by delivery tag, each with its outcome or None.
        attempt: number of the attach, from the side that asks for the link: one that arrives after a later one, from a
            connection that was lost meanwhile, must not take the link over.
        lasting: the link outlives its peers: after a restart, a message is sent with the same delivery tag as before,
            and its receiver knows what it has accepted. What the sender does not list may have been sent nevertheless.
        resumed: from the side that grants the link: it had kept the link's state. False for a new link.
    """

    id: str
    unsettled: Mapping[int, Outcome | None] = attrs.field(factory=dict)
    attempt: int = 0
    resumed: bool = False
    lasting: bool = False


def write_resumption(resumption: Resumption) -> dict[object, object]:
    """The value of the link property: delivery tags as ranges, by outcome."""
    tags: dict[str, list[int]] = {}
    for tag, outcome in sorted(resumption.unsettled.items()):
        tags.setdefault(_NONE if outcome is None else outcome.value, []).append(tag)
    unsettled: dict[str, list[proton.ulong]] = {name: list(_ranges(listed)) for name, listed in tags.items()}
    attempt = proton.ulong(resumption.attempt)
    written: dict[object, object] = {
        "id": resumption.id,
        "attempt": attempt,
        "resumed": resumption.resumed,
        "unsettled": unsettled,
    }
    if resumption.lasting:
        written["lasting"] = True
    return written


def read_resumption(value: object) -> Resumption | None:
    """What the peer sent as link property; None if it sent none.

    Raises:
        ValueError: it is malformed.
    """
    if value is None:
        return None
    if not isinstance(value, dict):
        raise ValueError(f"the link property {LINK_RESUMPTION} is not a map")
    id, attempt, resumed = value.get("id"), value.get("attempt", 0), value.get("resumed", False)
    if not isinstance(id, str) or not 0 < len(id) <= MAX_ID:
        raise ValueError(f"the link property {LINK_RESUMPTION} has no valid id")
    if not isinstance(attempt, int):
        raise ValueError("the number of an attach is not a number")
    unsettled = _read_unsettled(value.get("unsettled", {}))
    lasting = value.get("lasting") is True
    return Resumption(str(id), dict(sorted(unsettled.items())), int(attempt), resumed is True, lasting)


def _read_unsettled(lists: object) -> dict[int, Outcome | None]:
    """Deliveries with their outcomes, from ranges of delivery tags by outcome."""
    if not isinstance(lists, dict):
        raise ValueError("the unsettled deliveries of a link are not a map")
    unsettled: dict[int, Outcome | None] = {}
    for name, ranges in lists.items():
        if name not in _STATES or not isinstance(ranges, list) or len(ranges) % 2:
            raise ValueError(f"the unsettled deliveries of a link with state {name!r} are not valid")
        for first, last in zip(ranges[::2], ranges[1::2], strict=True):
            if not isinstance(first, int) or not isinstance(last, int) or not 0 <= first <= last < 1 << 64:
                raise ValueError(f"{first!r} to {last!r} is not a range of delivery tags")
            if len(unsettled) + last - first >= MAX_LISTED:
                raise ValueError(f"a link has more than {MAX_LISTED} unsettled deliveries")
            unsettled.update(dict.fromkeys(range(int(first), int(last) + 1), _STATES[name]))
    return unsettled


def _ranges(tags: Iterable[int]) -> Iterator[proton.ulong]:
    """First and last of each run of successive numbers."""
    first = last = None
    for tag in tags:
        if last is not None and tag == last + 1:
            last = tag
            continue
        if first is not None and last is not None:
            yield from (proton.ulong(first), proton.ulong(last))
        first = last = tag
    if first is not None and last is not None:
        yield from (proton.ulong(first), proton.ulong(last))
