"""Samples of all classes as rows of one value each, so that a few queries serve any number of classes.

DuckDB plans a query with a column for each member of a class for longer than it reads a few thousand rows. A stream,
which has few rows at a time, therefore rolls up *families*: the values of all counters, of all gauges, and of all mmas,
each as whole numbers and as others.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.rollup.members import NumberMember
from qmf.schema import Style

#: Members of a class at most: the number of a series is that of its object times this, and that of its member.
MEMBERS = 1 << 16

#: The name of the member that stands for all members of a family.
VALUE = "value"

#: The columns of samples that all values of a sample have.
_SHARED = ("_run", "_seq", "_ts_ns", "_agent", "_epoch", "_object", "_create_ns", "_delete_ns")


@attrs.frozen
class RollupFamily:
    """Values that are rolled up alike.

    Attributes:
        style: a counter, a gauge or an mma; hilos stand for all gauges.
        whole: the values are whole numbers.
    """

    style: Style
    whole: bool

    @classmethod
    def of(cls, member: NumberMember) -> RollupFamily:
        """The family of a member."""
        return cls(Style.HILO if member.gauge else member.style, member.whole)

    @property
    def name(self) -> str:
        """A name for tables."""
        return f"{self.style.value}_{'whole' if self.whole else 'double'}"

    @property
    def member(self) -> NumberMember:
        """All its values as those of one member."""
        has_extremes = self.style is not Style.COUNT
        return NumberMember(
            name=VALUE,
            style=self.style,
            unit=None,
            whole=self.whole,
            value="value",
            low="low" if has_extremes else "value",
            high="high" if has_extremes else "value",
            count="weight" if self.style is Style.MMA else None,
        )


def values_by_family(samples: Any, members: Sequence[NumberMember], class_number: int) -> dict[RollupFamily, list[Any]]:
    """The values in samples of a class, a row for each, as Arrow tables.

    Args:
        samples: an Arrow table with the columns that a roll-up reads.
        members: of the class.
        class_number: identifies the class.

    Returns:
        tables with the shared columns of samples, those of `RollupFamily.member`, and `_class` and `_member`.
    """
    pa = import_pyarrow()
    import pyarrow.compute as compute

    found: dict[RollupFamily, list[Any]] = {}
    shared = samples.select(list(_SHARED))
    for number, member in enumerate(members):
        value = samples[member.value]
        if value.null_count == len(value):
            continue
        family = RollupFamily.of(member)
        type = pa.decimal128(20, 0) if member.whole else pa.float64()
        own = family.member
        table = shared.append_column("_class", pa.repeat(pa.scalar(class_number, pa.int64()), len(value)))
        table = table.append_column("_member", pa.repeat(pa.scalar(number, pa.int64()), len(value)))
        for name, column in zip((own.value, own.low, own.high), (member.value, member.low, member.high), strict=True):
            if name not in table.column_names:
                table = table.append_column(name, compute.cast(samples[column], type))
        present = value.is_valid()
        if own.count is not None and member.count is not None:
            count = compute.cast(samples[member.count], pa.decimal128(20, 0))
            table = table.append_column(own.count, count)
            # A mean of no samples has no meaning.
            present = compute.and_(present, compute.fill_null(compute.greater(samples[member.count], 0), False))
        if value.null_count or own.count is not None:
            table = table.filter(present)
        if table.num_rows:
            found.setdefault(family, []).append(table)
    return found
