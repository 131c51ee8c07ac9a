"""`qmf-pipeline record`."""

from __future__ import annotations

import argparse
from pathlib import Path

from qmf._event_loop import on_end_signals, run
from qmf._option_values import count, number, seconds
from qmf.console.aio import Client
from qmf.pipeline.commands.base import (
    Subcommand,
    add_broker,
    add_options,
    broker_target,
    open_lake,
    print_line,
    print_or_stop,
)
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.waiting import Share
from qmf.pipeline.record.lake_recorder import DEFAULT_CELLS, DEFAULT_INTERVAL, LakeRecorder, RecorderCounts
from qmf.pipeline.record.properties import REFRESH
from qmf.pipeline.record.quiet_tables import QUIET_INTERVAL, QuietTables


def _options(parser: argparse.ArgumentParser) -> None:
    add_broker(parser)
    text = """
        --wait  wait for a broker that cannot be reached at the start
        --name NAME  unique among the recorders of a lake; default: %(default)s
        --share K/N  record only the agents of this share, such as 2/5: recorders of other shares and names have the
            others
        --interval S  seconds between commits
        --quiet-interval S  seconds between commits of tables with few rows that no stream follows; 0 for each
            interval; default: %(default)g
        --max-cells N  values that wait for a commit at most
        --refresh S  seconds after which agents are asked for what they did not publish meanwhile; default:
            %(default)g
        --state DIR  folder for what a restart after a kill needs; default: in a lake that is a folder the lake itself,
            otherwise ~/.local/state/qmf-pipeline
    """
    add_options(
        parser,
        text,
        name={"metavar": None, "default": "recorder"},
        share={"type": _share},
        interval={"type": seconds, "default": DEFAULT_INTERVAL},
        quiet_interval={"type": number, "default": QUIET_INTERVAL},
        max_cells={"type": count, "default": DEFAULT_CELLS},
        refresh={"type": seconds, "default": REFRESH},
        state={"type": Path},
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
