"""Settings of the tables: what their logs keep, and for how long.

A table that gets a commit every ten seconds has 8640 entries a day in its log, which outweigh its rows unless they are
small and go away: entries have figures of few columns, checkpoints do not list files that were taken out long ago, and
what checkpoints replace is deleted after some hours. Streams whose position is older, and readers of older versions,
are told which is the oldest version.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.row_columns import HASH

#: Commits from one checkpoint of a table's log to the next: each reader reads the log since the last one.
CHECKPOINT_COMMITS = 100

#: Hours that entries of a log stay: a stream may stand still for so long, so one that is run once a day goes on. Each
#: commit takes a list of the log's folder, so more files would make all commits slower.
LOG_HOURS = 30

#: Columns of recorded rows with statistics: those that readers choose files by. Some tables lack some of them.
RECORDED_STATISTICS = ("_run", "_seq", "_ts_ns", "_received_ns", HASH)

#: Those of tables with days that are clustered: readers of one object choose files by it.
CLUSTERED_STATISTICS = (*RECORDED_STATISTICS, "_agent", "_object")

_RETENTION = "delta.logRetentionDuration"

#: The property of a table that names the columns with statistics.
_STATISTICS = "delta.dataSkippingStatsColumns"


def exact_statistics(schema: Any) -> tuple[str, ...]:
    """The columns of a schema in Arrow whose limits the library notes exactly, so that readers find rows by them.

    It takes an infinity, or what is no number, for no limit, and a decimal of more than 63 bits for the largest of 63:
    readers who choose files by such limits miss rows. Nor can the property name columns that are no identifiers.
    """
    types = import_pyarrow().types
    inexact = (types.is_floating, types.is_decimal, types.is_nested)
    return tuple(
        field.name for field in schema if field.name.isidentifier() and not any(test(field.type) for test in inexact)
    )


def table_settings(statistics: Sequence[str] = ()) -> dict[str, str]:
    """The properties of a table, in the words of the Delta protocol.

    Args:
        statistics: the columns of whose values each file has the limits in the log; none for the library's choice.
    """
    found = {
        "delta.checkpointInterval": str(CHECKPOINT_COMMITS),
        _RETENTION: f"interval {LOG_HOURS} hours",
        # `vacuum` needs them to know when files were taken out; it finds older ones by the folder.
        "delta.deletedFileRetentionDuration": "interval 1 hours",
    }
    return {**found, _STATISTICS: ",".join(statistics)} if statistics else found


def lacking_settings(configuration: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """The property that names the columns with statistics, where a table lacks some; others stay as they are.

    Args:
        configuration: of the table.
        wanted: as of `table_settings`.
    """
    text = wanted.get(_STATISTICS)
    if text is None or set(text.split(",")) <= set((configuration.get(_STATISTICS) or "").split(",")):
        return {}
    return {_STATISTICS: text}
