"""`qmf-pipeline rollup`."""

from __future__ import annotations

import argparse

from qmf.pipeline.commands.base import (
    Subcommand,
    add_classes,
    add_days,
    add_stream,
    comma_separated,
    print_line,
    storage_of,
)
from qmf.pipeline.commands.running import job_runner, runs_on_spark
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.stream import RollupStream
from qmf.pipeline.rollup.stream_job import follow_lake
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.pipeline.rollup.task_stream import TaskRollupStream
from qmf.views.times import parse_duration


def _options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Roll samples up by windows of time, in this process, or on Spark by --master or --conf."
    parser.add_argument("--out", metavar="DIR", help="folder of the tables; default: LAKE/_tables/rollup")
    parser.add_argument(
        "--size", dest="sizes", type=comma_separated, default=("1m",), metavar="SIZES", help="windows, e.g. 1m,15m,1h"
    )
    parser.add_argument(
        "--timezone",
        default="UTC",
        metavar="ZONE",
        help="windows by local days, e.g. of Europe/Berlin; default: UTC",
    )
    parser.add_argument("--continued", action="store_true", help="counters outlive restarts of their agents")
    add_classes(parser)
    add_days(parser)
    add_stream(parser)


def _run(options: argparse.Namespace) -> None:
    rollup_options = RollupOptions(
        lake=options.lake,
        out=options.out or f"{options.lake.rstrip('/')}/_tables/rollup",
        sizes=options.sizes,
        classes=options.classes,
        first=options.first,
        last=options.last,
        late=options.late,
        continued=options.continued,
        timezone=options.timezone,
        storage=storage_of(options),
    )
    rollup_options.check()  # before Java is started
    with job_runner(options) as runner:
        if not options.stream:
            _print_rows(roll_up_lake(runner, rollup_options, print_line), rollup_options)
            return

        def make(chosen: RollupOptions) -> RollupStream:
            return TaskRollupStream(runner, chosen) if runs_on_spark(options) else RollupStream(chosen)

        every = parse_duration(options.every) / 10**9
        rows = follow_lake(runner, rollup_options, print_line, every=every, once=options.once, make=make)
        _print_rows(rows, rollup_options)


def _print_rows(rows: int, options: RollupOptions) -> None:
    print_line(f"Wrote {rows} rows to {options.out}")


COMMAND = Subcommand("rollup", "Roll samples up by windows of time", _options, _run, spark=True)
