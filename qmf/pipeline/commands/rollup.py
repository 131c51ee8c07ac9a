"""`qmf-pipeline rollup`."""

from __future__ import annotations

import argparse

from qmf.pipeline.commands.base import (
    Command,
    add_classes,
    add_days,
    add_stream,
    say,
    spark_session,
    words,
)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", metavar="DIR", help="where the tables go; default: LAKE/_tables/rollup")
    parser.add_argument(
        "--size", dest="sizes", type=words, default=("1m",), metavar="SIZES", help="windows, e.g. 1m,15m,1h"
    )
    parser.add_argument("--continued", action="store_true", help="counters outlive restarts of their agents")
    add_classes(parser)
    add_days(parser)
    add_stream(parser)


def _run(options: argparse.Namespace) -> None:
    with spark_session(options) as spark:
        from qmf.pipeline.rollup import job
        from qmf.pipeline.spark import queries

        chosen = job.RollupOptions(
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
            say(f"Wrote {job.rollup_batch(spark, chosen, say)} rows to {chosen.out}")
            return
        running = job.rollup_stream(spark, chosen, every=options.every, once=options.once)
        say(f"Following {options.lake} with {len(running)} queries")
        queries.follow(running, say)


COMMAND = Command("rollup", "Roll samples up by windows of time", _options, _run, spark=True)
