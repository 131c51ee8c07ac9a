"""`qmf-pipeline audit`."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import closing

from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.options import AuditOptions
from qmf.pipeline.audit.stream import AuditStream
from qmf.pipeline.commands.base import (
    Subcommand,
    check_followed,
    check_lake,
    duration,
    print_line,
    spark_session,
    storage_of,
)
from qmf.pipeline.shutdown import repeat_until_stopped
from qmf.views.times import parse_duration


def _options(parser: argparse.ArgumentParser) -> None:
    parser.description = (
        "Make tables of calls, property history, object lifetimes and availability. "
        "Spark is not needed, unless --master or --conf is given."
    )
    parser.add_argument(
        "--out", metavar="DIR", help="folder of the tables; default: LAKE/_tables/audit/batch, or .../stream"
    )
    parser.add_argument("--stream", action="store_true", help="follow the lake until a signal ends it")
    parser.add_argument("--once", action="store_true", help="a stream ends when it has read all that is in the lake")
    parser.add_argument(
        "--every", type=duration, default="1 minute", metavar="TIME", help="time from batch to batch of a stream"
    )


def _run(options: argparse.Namespace) -> None:
    mode = "stream" if options.stream else "batch"
    out = options.out or f"{options.lake.rstrip('/')}/_tables/audit/{mode}"
    audit_options = AuditOptions(lake=options.lake, out=out.rstrip("/"), storage=storage_of(options))
    if options.master is not None or options.conf:
        _run_on_spark(options, audit_options)
    elif options.stream:
        check_followed(options.lake)
        _follow(options, audit_options, AuditStream)
    else:
        check_lake(options.lake)
        _print_rows(audit_lake(audit_options, print_line), audit_options)


def _run_on_spark(options: argparse.Namespace, audit_options: AuditOptions) -> None:
    with spark_session(options) as spark:
        from qmf.pipeline.audit.spark_job import SparkAuditStream, audit_on_spark
        from qmf.pipeline.spark.batch_progress import report_progress

        if options.stream:
            _follow(options, audit_options, lambda chosen: SparkAuditStream(chosen, spark))
            return
        with report_progress(spark, "audit", print_line):
            counts = audit_on_spark(spark, audit_options, print_line)
        _print_rows(counts, audit_options)


def _follow(
    options: argparse.Namespace, audit_options: AuditOptions, make: Callable[[AuditOptions], AuditStream]
) -> None:
    with closing(make(audit_options)) as stream:
        print_line(f"Following {audit_options.lake}")

        def step() -> None:
            rows = stream.step()
            if rows:
                print_line(f"Read {rows} rows; the tables in {audit_options.out} include them")

        repeat_until_stopped(step, every=parse_duration(options.every) / 10**9, once=options.once)


def _print_rows(counts: dict[str, int], options: AuditOptions) -> None:
    print_line(f"Wrote {sum(counts.values())} rows to {options.out}")


COMMAND = Subcommand(
    "audit", "Make tables of calls, property history, object lifetimes and availability", _options, _run, spark=True
)
