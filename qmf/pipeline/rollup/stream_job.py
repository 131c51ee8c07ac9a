"""The job `rollup --stream`, wherever it runs: follows the lake until a signal ends it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing

from qmf.pipeline.lake.lake_versions import LakeVersions
from qmf.pipeline.lake.table_paths import CHECKPOINT
from qmf.pipeline.rollup.stream import RollupStream
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.pipeline.runners.runner import Pace, Runner
from qmf.pipeline.shutdown import stop_on_signals


def follow_lake(
    runner: Runner,
    options: RollupOptions,
    print_line: Callable[[str], None],
    *,
    every: float,
    once: bool,
    make: Callable[[RollupOptions], RollupStream] = RollupStream,
) -> int:
    """Roll up a lake as it grows.

    Args:
        runner: that follows the lake.
        options: of the roll-up; `first` and `last` are ignored.
        print_line: called for each commit, and at the end.
        every: seconds from look to look.
        once: end when everything is read that is in the lake now; the last windows are written although later samples
            may belong to them, and a later stream replaces them.
        make: makes the stream.

    Returns:
        rows written.

    Raises:
        PipelineError: not a size of windows.
        LakeError: the lake cannot be read, or the table cannot be written.
        MissingExtraError: DuckDB or deltalake is not installed.
    """
    sizes = ",".join(options.sizes)
    with closing(make(options)) as stream:
        print_line(f"Following {options.lake}")

        def step(until: LakeVersions | None) -> bool:
            rows = stream.step(until, last=once)
            if rows:
                print_line(f"Wrote {rows} rows")
            return False

        try:
            with stop_on_signals() as stop:
                checkpoint = f"{stream.table.url}/{CHECKPOINT}"
                runner.follow(stream.lake, checkpoint, step, Pace(every=every, once=once), stop)
        finally:
            print_line(f"rollup by {sizes}: {stream.counts}")
        return stream.counts.rows
