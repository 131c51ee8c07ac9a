"""Which values count up for ever, so that what matters is how fast.

Schemas of our agents tell it by the type. QMFv1, by which qpidd tells its classes, does not: there it goes by the name.
Of other agents nobody knows; their users say so with an option.
"""

from __future__ import annotations

import re

from qmf.schema import Statistic, Style

_QPID = "org.apache.qpid."
#: The numbers among qpidd's statistics that go up and down.
_GAUGES = re.compile(r".*Depth|queueCount|TxnCount|clientCredit|framesOutstanding|unackedMessages")


def is_counter(package: str, item: Statistic) -> bool:
    """Whether a statistic of a class in `package` is a counter."""
    if item.type.style is Style.COUNT:
        # One that is the difference of others goes up and down, whatever its type says.
        return item.assign is None and not (package.startswith(_QPID) and _GAUGES.fullmatch(item.name))
    return (
        package.startswith(_QPID)
        and item.type.name.startswith("uint")
        and item.unit not in ("nanosecond", "second")
        and not _GAUGES.fullmatch(item.name)
    )
