"""`qmf-pipeline record`."""

from __future__ import annotations

import argparse
from pathlib import Path

from qmf._event_loop import on_end_signals, run
from qmf._option_values import count, number, seconds
from qmf.console.aio import Client
from qmf.pipeline.commands.base import Subcommand, add_broker, broker_target, open_lake, print_line, print_or_stop
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.waiting import Share
from qmf.pipeline.record.lake_recorder import DEFAULT_CELLS, DEFAULT_INTERVAL, LakeRecorder, RecorderCounts
from qmf.pipeline.record.properties import REFRESH
from qmf.pipeline.record.quiet_tables import QUIET_INTERVAL, QuietTables


def _options(parser: argparse.ArgumentParser) -> None:
    add_broker(parser)
    parser.add_argument("--wait", action="store_true", help="wait for a broker that cannot be reached at the start")
    parser.add_argument("--name", default="recorder", help="unique among the recorders of a lake; default: %(default)s")
    parser.add_argument(
        "--share",
        type=_share,
        metavar="K/N",
        help="record only the agents of this share, such as 2/5: recorders of other shares and names have the others",
    )
    parser.add_argument(
        "--interval", type=seconds, default=DEFAULT_INTERVAL, metavar="S", help="seconds between commits"
    )
    parser.add_argument(
        "--quiet-interval",
        type=number,
        default=QUIET_INTERVAL,
        metavar="S",
        help="seconds between commits of tables with few rows that no stream follows; 0 for each interval; "
        "default: %(default)g",
    )
    parser.add_argument(
        "--max-cells", type=count, default=DEFAULT_CELLS, metavar="N", help="values that wait for a commit at most"
    )
    parser.add_argument(
        "--refresh",
        type=seconds,
        default=REFRESH,
        metavar="S",
        help="seconds after which agents are asked for what they did not publish meanwhile; default: %(default)g",
    )
    parser.add_argument(
        "--state",
        type=Path,
        metavar="DIR",
        help="folder for what a restart after a kill needs; default: in a lake that is a folder the lake itself, "
        "otherwise ~/.local/state/qmf-pipeline",
    )


def _share(text: str) -> Share:
    try:
        return Share.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _run(options: argparse.Namespace) -> None:
    import_pyarrow()  # before anything is connected
    counts = run(_recording(options))
    print_line(
        f"Wrote {counts.written.rows} rows in {counts.written.tables} commits of tables; "
        f"{counts.lost} messages lost on the way, {counts.invalid_values} values left out"
    )


async def _recording(options: argparse.Namespace) -> RecorderCounts:
    target = broker_target(options)
    client = Client(target.make_bus(), domain=target.domain, discover=True, wait=options.wait)
    recorder = LakeRecorder(
        client,
        open_lake(options),
        name=options.name,
        interval=options.interval,
        max_cells=options.max_cells,
        state=options.state,
        refresh=options.refresh,
        share=options.share,
        quiet=QuietTables(options.quiet_interval),
        on_commit=lambda written: show(f"Committed {written.rows} rows to {written.tables} tables"),
        on_ready=lambda: show(f"Recording {client.url} into {options.lake} as {options.name}{own}"),
    )
    own = "" if options.share is None else f", share {options.share}"
    show = print_or_stop(recorder.stop)
    with on_end_signals(recorder.stop):
        await recorder.run()
    counts = recorder.counts
    if counts.completed:
        print_line(f"After an interrupted run: committed {counts.completed} rows that it had stored")
    return counts


COMMAND = Subcommand("record", "Record a bus into a lake until a signal ends it", _options, _run)
