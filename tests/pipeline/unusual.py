"""Rows that statistics of the values would hide: infinities, what is no number, and numbers of 64 bits."""

from __future__ import annotations

import math
from decimal import Decimal

from pipeline.lakes import Shop

from qmf.pipeline.correlate.alert_table import AlertTable
from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.lake.columns import ClassVersion
from qmf.schema import TYPES, ClassSchema, Statistic

#: The table of the gauges, inside the lake.
GAUGES = "objects/org.example.shop/scale"

_SCALE = ClassSchema(
    package="org.example.shop",
    name="Scale",
    statistics=(Statistic(name="value", type=TYPES["double"]), Statistic(name="total", type=TYPES["uint64"])),
)

#: How many rows of gauges and alerts a condition on `value` has.
BY_VALUE = {"value >= 1000 AND NOT isnan(value)": 2, "value <= -1000": 1, "isnan(value)": 2, "value < 1.5": 2}

#: How many rows of gauges a condition on `total` has.
BY_TOTAL = {"total > 9223372036854775807": 3, "total = 18446744073709551615": 1, "total <= 2": 4}


def fill(shop: Shop) -> str:
    """Record gauges, a few in each commit; returns the URL of their table."""
    version = ClassVersion.from_schema(_SCALE)
    for number, values in enumerate(_VALUES):
        for value, total in values:
            shop.put((number, 0), table=version, commit=False, value=value, total=Decimal(total))
        shop.commit()
    return shop.lake.table(GAUGES).url


def raise_alerts(out: str) -> str:
    """Write alerts with the same values, a step for each commit; returns the URL of their table."""
    for step, values in enumerate(_VALUES):
        AlertTable(out, "stream").append(step + 1, [_alert(value) for value, _total in values])
    return f"{out}/stream"


_VALUES = (
    ((1.0, 1), (math.inf, 1 << 63)),
    ((2.0, 2), (-math.inf, (1 << 64) - 1)),
    ((3.0, (1 << 63) + 5), (math.nan, 2)),
    ((math.nan, 2), (math.inf, 3)),
)


def _alert(value: float) -> AlertRow:
    return AlertRow(
        alert_id="0" * 32,
        change="raised",
        rule="heavy",
        rule_hash="0" * 12,
        kind="threshold",
        severity=3,
        subject="a, one",
        agent="a",
        object="one",
        message="",
        reason="",
        value=value,
        began_ns=5,
        at_ns=10,
        window_start_ns=5,
        window_end_ns=10,
        evidence="[]",
    )
