"""The members of a class that can be rolled up, and sizes of windows.

DuckDB plans a query with a column for each member of a class for longer than it reads a few thousand rows. A stream,
which has few rows at a time, therefore rolls up *families*: the values of all counters, of all gauges, and of all mmas,
each as whole numbers and as others, as rows of one value each, so that a few queries serve any number of classes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import attrs

from qmf.pipeline.errors import PipelineError, import_extra
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.columns import ClassVersion, ColumnType, LakeColumn, MemberKind, MemberPart
from qmf.schema import TYPES, Style
from qmf.views.times import parse_duration

_SECONDS_PER_DAY = 86_400
# Sizes are names in tables of a lake: each window has one.
_WINDOW = re.compile(r"[0-9]{1,9}[smhd]")

_WHOLE = (ColumnType.INT8, ColumnType.INT16, ColumnType.INT32, ColumnType.INT64, ColumnType.DECIMAL)
_NUMBERS = (*_WHOLE, ColumnType.FLOAT, ColumnType.DOUBLE)


@attrs.frozen
class NumberMember:
    """A statistic whose values are numbers, with its columns.

    Attributes:
        name: of the statistic.
        style: how it is set.
        unit: of the values, or None.
        whole: the values are whole numbers.
        value: column of the value itself; for an mma of the mean.
        low, high: columns of the extremes; that of the value where there are none.
        count: column of the number of samples behind a mean; None where each value counts once.
    """

    name: str
    style: Style
    unit: str | None
    whole: bool
    value: str
    low: str
    high: str
    count: str | None

    @classmethod
    def of(cls, columns: Sequence[LakeColumn]) -> NumberMember:
        """The member that some columns belong to."""
        style = columns[0].style
        by_part = {column.part: column.name for column in columns}
        value = by_part[MemberPart.AVERAGE if style is Style.MMA else MemberPart.VALUE]
        return cls(
            name=columns[0].member,
            style=style,
            unit=columns[0].unit,
            whole=columns[0].column_type in _WHOLE,
            value=value,
            low=by_part.get(MemberPart.LOW if style is Style.HILO else MemberPart.MIN, value),
            high=by_part.get(MemberPart.HIGH if style is Style.HILO else MemberPart.MAX, value),
            count=by_part[MemberPart.COUNT] if style is Style.MMA else None,
        )

    @property
    def gauge(self) -> bool:
        """Its value holds until the next sample."""
        return self.style in (Style.DIRECT, Style.HILO)

    @property
    def linked(self) -> bool:
        """A window of it depends on the sample before: a counter or a gauge."""
        return self.gauge or self.style is Style.COUNT

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns, each once."""
        names = (self.value, self.low, self.high, *((self.count,) if self.count else ()))
        return tuple(dict.fromkeys(names))


def number_members(versions: Sequence[ClassVersion]) -> list[NumberMember]:
    """The members of a class, in schema order, that can be rolled up."""
    by_member: dict[str, dict[str, LakeColumn]] = {}
    for version in versions:
        for column in version.columns:
            by_member.setdefault(column.member, {}).setdefault(column.name, column)
    found = [list(columns.values()) for columns in by_member.values()]
    return [NumberMember.of(columns) for columns in found if _is_number(columns[0])]


def window_seconds(size: str) -> int:
    """The seconds of a window of this size, e.g. ``1m`` or ``6h``.

    Raises:
        PipelineError: not a size, or a day is not a multiple of it: windows would cross midnight, and so would files.
    """
    value = parse_duration(size) // 10**9 if _WINDOW.fullmatch(size) else 0
    if not value or _SECONDS_PER_DAY % value:
        raise PipelineError(f"a window is a part of a day such as 10s, 1m, 15m, 1h or 1d, not {size!r}")
    return value


def _is_number(column: LakeColumn) -> bool:
    return (
        column.kind is MemberKind.STATISTIC and column.column_type in _NUMBERS and TYPES[column.type].base != "absTime"
    )


#: Members of a class at most: the number of a series is that of its object times this, and that of its member.
MEMBERS = 1 << 16

#: The name of the member that stands for all members of a family.
VALUE = "value"

#: The columns of samples that all values of a sample have.
_SHARED = ("_run", "_seq", "_ts_ns", "_agent", "_epoch", "_object", "_create_ns", "_delete_ns")


@attrs.frozen
class RollupFamily:
    """Values that are rolled up alike: of counters, of gauges (hilos stand for all), or mmas; whole numbers or not."""

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
    """The values in an Arrow table of samples of a class, which has a number, as rows of one value each.

    They have the shared columns of samples, those of `RollupFamily.member`, and `_class` and `_member`.
    """
    pa, compute = import_pyarrow(), import_extra("pyarrow.compute")
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
