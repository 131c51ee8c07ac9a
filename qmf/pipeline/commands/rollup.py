"""`qmf-pipeline rollup`."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from qmf.pipeline.commands.base import (
    Subcommand,
    add_classes,
    add_days,
    add_stream,
    check_followed,
    check_lake,
    comma_separated,
    print_line,
    spark_session,
    storage_of,
)
from qmf.pipeline.lake.location import is_local
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.stream import RollupStream
from qmf.pipeline.rollup.stream_job import follow_lake
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.views.times import parse_duration


def _options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Roll samples up by windows of time. A lake in a local folder needs no Spark, "
        "unless --master or --conf is given."
    )
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
    if _needs_spark(options, rollup_options):
        _run_on_spark(options, rollup_options)
        return
    if not options.stream:
        check_lake(options.lake)
        _print_rows(roll_up_lake(rollup_options, print_line), rollup_options)
        return
    check_followed(options.lake)
    _follow(options, rollup_options, RollupStream)


def _follow(
    options: argparse.Namespace, rollup_options: RollupOptions, make: Callable[[RollupOptions], RollupStream]
) -> None:
    every = parse_duration(options.every) / 10**9
    rows = follow_lake(rollup_options, print_line, every=every, once=options.once, make=make)
    _print_rows(rows, rollup_options)


def _needs_spark(options: argparse.Namespace, rollup_options: RollupOptions) -> bool:
    is_asked_for = options.master is not None or options.conf
    return bool(is_asked_for) or not (is_local(rollup_options.lake) and is_local(rollup_options.out))


def _run_on_spark(options: argparse.Namespace, rollup_options: RollupOptions) -> None:
    with spark_session(options) as spark:
        from qmf.pipeline.rollup import spark_job

        if not options.stream:
            _print_rows(spark_job.rollup_batch(spark, rollup_options, print_line), rollup_options)
            return

        def make(chosen: RollupOptions) -> RollupStream:
            return spark_job.SparkRollupStream(chosen, spark)

        _follow(options, rollup_options, make)


def _print_rows(rows: int, options: RollupOptions) -> None:
    print_line(f"Wrote {rows} rows to {options.out}")


COMMAND = Subcommand("rollup", "Roll samples up by windows of time", _options, _run, spark=True)
