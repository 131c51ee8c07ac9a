"""The contents of tables and other results: plain Python values, or one of these classes, which give them a meaning.

So no command formats a time or a number itself.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping

import attrs


class CellForm(enum.Enum):
    """How much a cell says."""

    FULL = "full"  #: everything: numbers with their unit, statistics with all their values
    WIDE = "wide"  #: shortened numbers, whose unit the heading has; statistics with all their values
    BRIEF = "brief"  #: shortened numbers; of hilo and mma statistics only the value or the mean


@attrs.frozen
class Instant:
    """A point in time, in nanoseconds since 1970; 0 means never."""

    ns: int


@attrs.frozen
class Duration:
    """A duration in nanoseconds."""

    ns: int


@attrs.frozen
class Quantity:
    """A measured number.

    Attributes:
        value: the number.
        unit: as in the schema, e.g. ``octet``, or None.
    """

    value: int | float
    unit: str | None = None


@attrs.frozen
class HiLoCell:
    """The value of a hilo statistic, with the highest and lowest value of the interval.

    Attributes:
        value, high, low: numbers; None where the agent did not send one.
        unit: of all three, or None.
    """

    value: int | float | None
    high: int | float | None
    low: int | float | None
    unit: str | None = None


@attrs.frozen
class MinMaxMeanCell:
    """The value of an mma statistic: the samples of an interval.

    Attributes:
        count: how many samples.
        low, high, mean: of the samples.
        unit: of the three values, or None.
        duration: the values are nanoseconds.
    """

    count: int | None
    low: int | float | None
    high: int | float | None
    mean: int | float | None
    unit: str | None = None
    duration: bool = False


@attrs.frozen
class ReferenceCell:
    """A reference to an object.

    Attributes:
        id: its short id.
        name: its class and index.
        object: its name within its agent, which programs get.
    """

    id: int
    name: str
    object: str


@attrs.frozen
class Collection:
    """A map or list."""

    value: object


@attrs.frozen
class NamedValues:
    """Named values on one line, e.g. the arguments of an event.

    Attributes:
        values: by name, in their order.
        minor: names that come last where the line is shortened.
    """

    values: Mapping[str, Cell]
    minor: frozenset[str] = frozenset()


@attrs.frozen
class WatchedValue:
    """A value in a view that is refreshed again and again.

    Attributes:
        cell: the value.
        changed: it is different from the value in the previous frame.
        rate: growth of a counter per second; None before it is known.
        counter: it is a counter, so it has a rate.
    """

    cell: Cell
    changed: bool = False
    rate: float | None = None
    counter: bool = False


#: What programs get of one object: cells by name.
Record = Mapping[str, "Cell"]

Cell = (
    None
    | bool
    | int
    | float
    | str
    | Instant
    | Duration
    | Quantity
    | HiLoCell
    | MinMaxMeanCell
    | ReferenceCell
    | Collection
    | NamedValues
    | WatchedValue
)
