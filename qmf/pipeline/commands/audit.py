"""`qmf-pipeline audit`."""

from __future__ import annotations

import argparse

from qmf.pipeline.commands.base import Subcommand, duration, print_line, spark_session


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="DIR", help="folder of the tables; default: LAKE/_tables/audit/batch, or .../stream"
    )
    parser.add_argument("--stream", action="store_true", help="follow the lake until a signal ends it")
    parser.add_argument("--once", action="store_true", help="a stream ends when it has read all that is in the lake")
    parser.add_argument(
        "--every", type=duration, default="1 minute", metavar="TIME", help="time from batch to batch of a stream"
    )


def _run(options: argparse.Namespace) -> None:
    with spark_session(options) as spark:
        from qmf.pipeline.audit import job
        from qmf.pipeline.spark.batch_progress import report_progress
        from qmf.pipeline.spark.streaming_queries import run_until_stopped

        mode = "stream" if options.stream else "batch"
        out = options.out or f"{options.lake.rstrip('/')}/_tables/audit/{mode}"
        job_options = job.AuditOptions(lake=options.lake, out=out.rstrip("/"))
        if options.stream:
            queries = job.audit_stream(spark, job_options, every=options.every, once=options.once)
            print_line(f"Following {options.lake}")
            run_until_stopped(queries, print_line)
        else:
            with report_progress(spark, "audit", print_line):
                counts = job.audit_batch(spark, job_options, print_line)
            print_line(f"Wrote {sum(counts.values())} rows to {out}")


COMMAND = Subcommand(
    "audit", "Make tables of calls, property history, object lifetimes and availability", _options, _run, spark=True
)
