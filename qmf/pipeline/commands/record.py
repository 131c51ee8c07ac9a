"""`qmf-pipeline record`."""

from __future__ import annotations

import argparse

from qmf._event_loop import on_end_signals, run
from qmf.console.aio import Client
from qmf.pipeline.commands.base import Subcommand, add_broker, broker_target, local_lake, positive, print_line
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.recording.buffers import CommitCounts
from qmf.pipeline.recording.lake_recorder import (
    DEFAULT_BYTES,
    DEFAULT_CELLS,
    DEFAULT_INTERVAL,
    LakeRecorder,
    RecorderCounts,
)

_MB = 1024 * 1024


def _options(parser: argparse.ArgumentParser) -> None:
    add_broker(parser)
    parser.add_argument("--wait", action="store_true", help="wait for a broker that cannot be reached at the start")
    parser.add_argument("--name", default="recorder", help="unique among the recorders of a lake; default: %(default)s")
    parser.add_argument(
        "--interval", type=positive, default=DEFAULT_INTERVAL, metavar="S", help="seconds between commits"
    )
    parser.add_argument(
        "--max-mb", type=positive, default=DEFAULT_BYTES / _MB, metavar="MB", help="approximate size of a file at most"
    )
    parser.add_argument(
        "--max-cells", type=int, default=DEFAULT_CELLS, metavar="N", help="values that wait for a commit at most"
    )


def _run(options: argparse.Namespace) -> None:
    import_pyarrow()  # before anything is connected
    counts = run(_recording(options))
    print_line(
        f"Wrote {counts.written.rows} rows in {counts.written.files} files, {counts.written.size} bytes; "
        f"{counts.lost} messages lost on the way, {counts.invalid_values} values left out"
    )


async def _recording(options: argparse.Namespace) -> RecorderCounts:
    target = broker_target(options)
    client = Client(target.make_bus(), domain=target.domain, discover=True, wait=options.wait)
    recorder = LakeRecorder(
        client,
        local_lake(options.lake),
        name=options.name,
        interval=options.interval,
        max_cells=options.max_cells,
        max_bytes=int(options.max_mb * _MB),
        on_commit=_committed,
        on_ready=lambda: print_line(f"Recording {client.url} into {options.lake} as {options.name}"),
    )
    with on_end_signals(recorder.stop):
        await recorder.run()
    counts = recorder.counts
    if counts.removed or counts.entered:
        print_line(
            f"After a killed run: {counts.removed} temporary files removed, {counts.entered} files added to the log"
        )
    return counts


def _committed(written: CommitCounts) -> None:
    print_line(f"Committed {written.rows} rows in {written.files} files, {written.size} bytes")


COMMAND = Subcommand("record", "Record a bus into a lake until a signal ends it", _options, _run)
