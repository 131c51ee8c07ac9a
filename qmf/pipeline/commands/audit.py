"""`qmf-pipeline audit`."""

from __future__ import annotations

import argparse

from qmf.pipeline.commands.base import Command, duration, say, spark_session


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="DIR", help="where the tables go; default: LAKE/_tables/audit/batch, or .../stream"
    )
    parser.add_argument("--stream", action="store_true", help="follow the lake until a signal ends it")
    parser.add_argument("--once", action="store_true", help="a stream ends when it has read what is there")
    parser.add_argument(
        "--every", type=duration, default="1 minute", metavar="TIME", help="time from batch to batch of a stream"
    )


def _run(options: argparse.Namespace) -> None:
    with spark_session(options) as spark:
        from qmf.pipeline.audit import job
        from qmf.pipeline.spark import queries

        way = "stream" if options.stream else "batch"
        out = options.out or f"{options.lake.rstrip('/')}/_tables/audit/{way}"
        chosen = job.AuditOptions(lake=options.lake, out=out.rstrip("/"))
        if options.stream:
            running = job.audit_stream(spark, chosen, every=options.every, once=options.once)
            say(f"Following {options.lake}")
            queries.follow(running, say)
        else:
            with queries.progress(spark, "audit", say):
                counts = job.audit_batch(spark, chosen, say)
            say(f"Wrote {sum(counts.values())} rows to {out}")


COMMAND = Command("audit", "Tell who did what, what was when, and who was there", _options, _run, spark=True)
