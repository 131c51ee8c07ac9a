"""Which values are counters: they only grow, so their rates matter.

In schemas of agents of this project the type shows it. QMFv1, in which qpidd sends its classes, has no such type: there
the name decides. For other agents it is unknown; the user can treat all integers as counters by an option.
"""

from __future__ import annotations

import re

from qmf.schema import Statistic, Style

_QPID = "org.apache.qpid."
#: The numbers among qpidd's statistics that are not counters.
_GAUGES = re.compile(r".*Depth|queueCount|TxnCount|clientCredit|framesOutstanding|unackedMessages")


def is_counter(package: str, item: Statistic) -> bool:
    """True if a statistic of a class in `package` is a counter."""
    if item.type.style is Style.COUNT:
        # A difference of others rises and falls, whatever its type is.
        return item.assign is None and not (package.startswith(_QPID) and _GAUGES.fullmatch(item.name))
    return (
        package.startswith(_QPID)
        and item.type.name.startswith("uint")
        and item.unit not in ("nanosecond", "second")
        and not _GAUGES.fullmatch(item.name)
    )
