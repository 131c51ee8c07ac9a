"""What commands return: values, not text. `render` turns them into lines for people or JSON for programs.

A cell is a plain Python value or one of the small classes here that say what it means, so that no command formats a
time or a number itself. Knows nothing of terminals and nothing of the bus.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import attrs


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
        unit: as the schema says, e.g. ``octet``, or None.
    """

    value: int | float
    unit: str | None = None


@attrs.frozen
class HiLo:
    """A value with its highest and lowest of the interval (hilo statistics).

    Attributes:
        value, high, low: numbers; None where the agent did not send one.
        unit: of all three, or None.
    """

    value: int | float | None
    high: int | float | None
    low: int | float | None
    unit: str | None = None


@attrs.frozen
class MinMaxMean:
    """Samples of an interval (mma statistics).

    Attributes:
        count: how many samples.
        low, high, mean: of their values.
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
        name: its name or key text.
    """

    id: int
    name: str


@attrs.frozen
class Collection:
    """A map or list."""

    value: object


@attrs.frozen
class NamedValues:
    """Named values on one line, e.g. the arguments of an event."""

    values: Mapping[str, Cell]


@attrs.frozen
class WatchedValue:
    """A value that is looked at again and again.

    Attributes:
        cell: the value.
        changed: it is not what it was in the picture before.
        rate: how fast a counter grows, per second; None where that is not known yet.
        counter: it is a counter, so it has a rate.
    """

    cell: Cell
    changed: bool = False
    rate: float | None = None
    counter: bool = False


Cell = (
    None
    | bool
    | int
    | float
    | str
    | Instant
    | Duration
    | Quantity
    | HiLo
    | MinMaxMean
    | ReferenceCell
    | Collection
    | NamedValues
    | WatchedValue
)


class Role(enum.Enum):
    """What a column holds; a terminal shows it by alignment and colour."""

    TEXT = "text"
    ID = "id"
    NAME = "name"
    NUMBER = "number"
    TIME = "time"
    SEVERITY = "severity"
    FAINT = "faint"
    TREE = "tree"


@attrs.frozen
class Column:
    """A column of a table.

    Attributes:
        title: its heading.
        role: what it holds.
        wraps: may be broken into lines where the terminal is narrow; others are shown whole or not side by side.
        spare: other columns say the same: the first to be left out where the terminal is narrow.
        key: name of the value in JSON and CSV; by default the heading in lower case.
    """

    title: str
    role: Role = Role.TEXT
    wraps: bool = False
    spare: bool = False
    key: str = attrs.field(default=attrs.Factory(lambda self: self.title.lower(), takes_self=True))


@attrs.frozen
class Table:
    """Rows under headings.

    Attributes:
        columns: headings.
        rows: one cell per column each.
        title: line above, or None.
        empty: what to say instead when there are no rows.
        note: line below, or None.
    """

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str | None = None
    empty: str = "Nothing to show."
    note: str | None = None


@attrs.frozen
class Details:
    """Names with their values, one below the other.

    Attributes:
        pairs: name and value.
        title: line above, or None.
    """

    pairs: tuple[tuple[str, Cell], ...]
    title: str | None = None


class NoticeLevel(enum.Enum):
    """How loud a message is."""

    PLAIN = "plain"
    GOOD = "good"
    WARNING = "warning"


@attrs.frozen
class Notice:
    """A sentence, or several lines of prose."""

    text: str
    level: NoticeLevel = NoticeLevel.PLAIN


@attrs.frozen
class ResultGroup:
    """Several results, one after the other.

    Attributes:
        parts: the results.
        data: what programs get instead: a tree of maps, lists and plain values; None where they get the parts.
    """

    parts: tuple[Result, ...]
    data: object = None


@attrs.frozen
class StreamLine:
    """One line of a stream.

    Attributes:
        columns: what the cells are, as of a table.
        cells: one per column.
    """

    columns: tuple[Column, ...]
    cells: tuple[Cell, ...]


@attrs.frozen
class ResultStream:
    """Results that arrive while one waits; printed as they come, until Ctrl-C.

    Attributes:
        items: blocks between results. Closed by whoever prints.
        title: line above, or None.
    """

    items: Iterator[Result]
    title: str | None = None


@attrs.frozen
class PlotSeries:
    """A line of a plot.

    Attributes:
        name: what it shows.
        points: seconds and values, oldest first; None where there was no value.
        cell: the latest value.
    """

    name: str
    points: tuple[tuple[float, float | None], ...]
    cell: Cell = None


@attrs.frozen
class Plot:
    """Lines over time.

    Attributes:
        series: the lines.
        title: line above.
        at: when the last points were taken.
        note: line below, or None.
    """

    series: tuple[PlotSeries, ...]
    title: str
    at: Instant
    note: str | None = None


@attrs.frozen
class LiveView:
    """A picture that is drawn again and again, until Ctrl-C, ``q`` or so many pictures.

    Attributes:
        frame: makes the next picture. A `QmfError` that it raises is shown, and the view goes on.
        interval: seconds from one picture to the next.
        count: how many pictures; None for no end.
    """

    frame: Callable[[], Result]
    interval: float
    count: int | None = None


@attrs.frozen
class TranscriptRequest:
    """The user wants lines and results written to a file, or no longer.

    Attributes:
        path: the file; None to end it.
    """

    path: Path | None


@attrs.frozen
class QuitRequest:
    """The user wants to leave."""


Result = (
    Table
    | Details
    | Notice
    | ResultGroup
    | StreamLine
    | ResultStream
    | Plot
    | LiveView
    | TranscriptRequest
    | QuitRequest
)
