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
    spark_session,
)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", help="folder of the tables; default: LAKE/_tables/rollup")
    parser.add_argument(
        "--size", dest="sizes", type=comma_separated, default=("1m",), metavar="SIZES", help="windows, e.g. 1m,15m,1h"
    )
    parser.add_argument("--continued", action="store_true", help="counters outlive restarts of their agents")
    add_classes(parser)
    add_days(parser)
    add_stream(parser)


def _run(options: argparse.Namespace) -> None:
    with spark_session(options) as spark:
        from qmf.pipeline.rollup import job
        from qmf.pipeline.spark.streaming_queries import run_until_stopped

        job_options = job.RollupOptions(
            lake=options.lake,
            out=options.out or f"{options.lake.rstrip('/')}/_tables/rollup",
            sizes=options.sizes,
            classes=options.classes,
            first=options.first,
            last=options.last,
            late=options.late,
            continued=options.continued,
        )
        if not options.stream:
            rows = job.rollup_batch(spark, job_options, print_line)
            print_line(f"Wrote {rows} rows to {job_options.out}")
            return
        queries = job.rollup_stream(spark, job_options, every=options.every, once=options.once)
        print_line(f"Following {options.lake} with {len(queries)} {'query' if len(queries) == 1 else 'queries'}")
        run_until_stopped(queries, print_line)


COMMAND = Subcommand("rollup", "Roll samples up by windows of time", _options, _run, spark=True)
