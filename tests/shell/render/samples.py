"""Results of each kind, and what a screen prints of them."""

from __future__ import annotations

import re

from qmf_shell.render.styles import OutputStyle
from qmf_shell.results.result import (
    Details,
    Notice,
    NoticeLevel,
    Result,
    ResultGroup,
    Role,
    StreamLine,
    Table,
    TableColumn,
)
from shell.fakes import (
    NOON,
    Output,
    make_output,
)

from qmf.views.cells import (
    Instant,
)

COLUMNS = (
    TableColumn("ID", Role.ID),
    TableColumn("Created", Role.TIME),
    TableColumn("Destroyed", Role.TIME),
    TableColumn("Index", Role.NAME, wraps=True),
)

LONG = "/a/very/long/path/that/does/not/fit/into/forty/columns"

TABLE = Table(COLUMNS, ((101, Instant(NOON), None, "/"), (102, Instant(NOON), None, LONG)), "2 objects", note="done")

EVIL = "a\x1b[31mred\nline"

LINE = StreamLine(
    (TableColumn("Time", Role.TIME), TableColumn("Severity", Role.SEVERITY), TableColumn("Event", Role.NAME)),
    (Instant(NOON), "warn", "full"),
)

RESULTS: dict[str, Result] = {
    "table": TABLE,
    "empty": Table(COLUMNS, (), "none", empty="No objects."),
    "wide": Table(tuple(TableColumn(f"c{n}") for n in range(8)), (tuple(f"value {n}" for n in range(8)),)),
    "details": Details((("sequence", 7), ("body", LONG)), "echo of 101"),
    "message": Notice("first\nsecond", NoticeLevel.GOOD),
    "group": ResultGroup((Notice("a"), TABLE)),
    "line": LINE,
    "evil": ResultGroup(
        (Table((TableColumn(EVIL),), ((EVIL,),), EVIL, note=EVIL), Details(((EVIL, EVIL),), EVIL), Notice(EVIL))
    ),
}
#: Escape sequences of colours.
ANSI = re.compile(r"\x1b\[[0-9;]*m")


def shown(result: Result, style: OutputStyle, width: int | None) -> Output:
    output = make_output(style, width)
    output.screen.show(result)
    return output
