"""The results of commands: tables, notices, plots, streams, views."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs

from qmf.views.cells import Cell, CellForm, Instant, Record


class Role(enum.Enum):
    """What a column contains; decides its alignment and colour."""

    TEXT = "text"
    ID = "id"
    NAME = "name"
    NUMBER = "number"
    TIME = "time"
    SEVERITY = "severity"
    FAINT = "faint"
    TREE = "tree"


@attrs.frozen
class TableColumn:
    """A column of a table.

    Attributes:
        title: its heading.
        role: what it contains.
        wraps: its texts may be broken into lines on a narrow terminal; texts of other columns are never broken.
        shortens: its texts may be shortened on a narrow terminal: names in the middle, named values one by one.
        spare: it repeats what other columns contain: the first to be left out on a narrow terminal.
        key: name of the value in JSON and CSV; by default the heading in lower case.
        form: how much its cells say.
        unit: of its numbers, as in the schema; shown in the heading if `form` is not FULL.
    """

    title: str
    role: Role = Role.TEXT
    wraps: bool = False
    spare: bool = False
    key: str = attrs.field(default=attrs.Factory(lambda self: self.title.lower(), takes_self=True))
    form: CellForm = CellForm.FULL
    unit: str | None = None
    shortens: bool = False


@attrs.frozen
class Table:
    """Rows under headings.

    Attributes:
        columns: headings.
        rows: each with one cell per column.
        title: line above, or None.
        empty: printed instead if there are no rows.
        note: line below, or None.
        exact: numbers are shown with every digit, whatever the settings say.
        records: returns what programs get instead of the rows, one record per object; None: they get the rows.
        more: makes further tables whose rows and notes follow, in columns that this table decides about; None if
            these rows are all.
    """

    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    title: str | None = None
    empty: str = "Nothing to show."
    note: str | None = None
    exact: bool = False
    records: Callable[[], Iterable[Record]] | None = None
    more: Callable[[], Iterator[Table]] | None = None


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
    """How important a notice is."""

    PLAIN = "plain"
    GOOD = "good"
    WARNING = "warning"


@attrs.frozen
class Notice:
    """A sentence, or several lines of prose, for people."""

    text: str
    level: NoticeLevel = NoticeLevel.PLAIN


@attrs.frozen
class ResultGroup:
    """Several results, one after the other.

    Attributes:
        parts: the results.
        data: printed instead as JSON: a tree of maps, lists and plain values; None: the parts are printed.
    """

    parts: tuple[Result, ...]
    data: object = None


@attrs.frozen
class StreamLine:
    """One line of a stream.

    Attributes:
        columns: what the cells are, as in a table.
        cells: one per column.
        record: what programs get instead of the cells, by the keys of the columns; None: they get the cells.
    """

    columns: tuple[TableColumn, ...]
    cells: tuple[Cell, ...]
    record: Record | None = None


@attrs.frozen
class ResultStream:
    """Results that arrive over time; printed as they come, until Ctrl-C.

    Attributes:
        items: blocks between results. Closed by the part that prints.
        title: line above, or None.
    """

    items: Iterator[Result]
    title: str | None = None


@attrs.frozen
class PlotSeries:
    """One line of a plot.

    Attributes:
        name: of the value drawn.
        points: seconds and values, oldest first; None where there was no value.
        cell: the latest value.
        unit: of the values; lines with the same unit share an axis.
    """

    name: str
    points: tuple[tuple[float, float | None], ...]
    cell: Cell = None
    unit: str | None = None


@attrs.frozen
class Plot:
    """Lines over time.

    Attributes:
        series: the lines.
        title: line above.
        at: time of the last points.
        note: line below, or None.
        first, last: the period that is drawn; None: from the first point to now.
    """

    series: tuple[PlotSeries, ...]
    title: str
    at: Instant
    note: str | None = None
    first: Instant | None = None
    last: Instant | None = None


@attrs.frozen
class LiveView:
    """A result that is made again and again, until Ctrl-C or for a number of frames, which follow each other.

    Attributes:
        frame: makes the next frame. A `QmfError` is shown, and the view continues, unless it is the first.
        interval: seconds from one frame to the next.
        count: how many frames; None for no end.
    """

    frame: Callable[[], Result]
    interval: float
    count: int | None = None


@attrs.frozen
class LiveScreen:
    """Something that fills the terminal where that is possible, until the user leaves it.

    Attributes:
        lines: what is printed instead in a file, in a pipe, or if the user wants lines.
        page: makes the first page, a `qmf_shell.screens.state.Page`.
        context: the session that it is for.
        exact: numbers are shown with every digit, whatever the settings say.
    """

    lines: LiveView | ResultStream
    page: Callable[[], Any]
    context: Any = attrs.field(repr=False)
    exact: bool = False


@attrs.frozen
class TranscriptRequest:
    """The user wants lines and results to be written to a file, or no longer.

    Attributes:
        path: the file; None ends it.
    """

    path: Path | None


@attrs.frozen
class ScriptRequest:
    """The user wants the commands in a file to be run.

    Attributes:
        path: the file.
    """

    path: Path


@attrs.frozen
class ClearRequest:
    """The user wants an empty screen."""


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
    | LiveScreen
    | TranscriptRequest
    | ScriptRequest
    | ClearRequest
    | QuitRequest
)


def in_one(results: Sequence[Result]) -> Result:
    """Results as one: itself if there is one, else a group."""
    return results[0] if len(results) == 1 else ResultGroup(tuple(results))
