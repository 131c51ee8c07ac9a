"""Which rows of Arrow count, where several recorders recorded the same agents; see `runs`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.runs import LeftOut

#: Between the names of an agent and of a run; in neither of them.
_SEPARATOR = "\0"


@attrs.frozen
class _Layer:
    """Times of agents in runs, one for each of these, as Arrow arrays."""

    keys: Any
    first: Any
    end: Any


class CountedRows:
    """Tells rows that count from those that are left out, by one look-up for each row."""

    #: The columns that decide.
    columns = ("_run", "_agent", "_ts_ns")

    def __init__(self, left_out: Sequence[LeftOut]) -> None:
        """Prepare for rows that are left out."""
        pa = import_pyarrow()
        times: list[dict[str, tuple[int, int]]] = []
        for row in left_out:
            key = f"{row.agent}{_SEPARATOR}{row.run}"
            layer = next((layer for layer in times if key not in layer), None)
            if layer is None:
                times.append(layer := {})
            layer[key] = (row.first_ns, row.end_ns)
        self._layers = [
            _Layer(
                pa.array(layer, pa.string()),
                pa.array([first for first, _end in layer.values()], pa.int64()),
                pa.array([end for _first, end in layer.values()], pa.int64()),
            )
            for layer in times
        ]

    def of(self, rows: Any) -> Any:
        """The rows of a table or a record batch that count; it has `columns`."""
        if not self._layers or not rows.num_rows:
            return rows
        import_pyarrow()
        import pyarrow.compute as compute

        time = rows["_ts_ns"]
        # Rows without an agent belong to no one else.
        key = compute.binary_join_element_wise(rows["_agent"], rows["_run"], _SEPARATOR)
        left = None
        for layer in self._layers:
            place = compute.index_in(key, value_set=layer.keys)
            inside = compute.and_(
                compute.greater_equal(time, compute.take(layer.first, place)),
                compute.less(time, compute.take(layer.end, place)),
            )
            inside = compute.fill_null(inside, False)
            left = inside if left is None else compute.or_(left, inside)
        return rows.filter(compute.invert(left))
