"""`qmf-pipeline audit` and `history`: the tables of an audit, or those of them that are about agents and objects."""

from __future__ import annotations

import argparse
from functools import partial

from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.stream import AuditStream
from qmf.pipeline.audit.tables import AuditOptions
from qmf.pipeline.commands.base import Subcommand, add_options, add_stream, print_line, storage_of
from qmf.pipeline.commands.running import follow, job_runner
from qmf.pipeline.lake.lake_versions import LakeVersions
from qmf.pipeline.lake.location import job_path
from qmf.pipeline.runners.runner import Runner


def _options(parser: argparse.ArgumentParser, *, job: str, tables: str) -> None:
    parser.description = f"Make tables of {tables}, in this process, or on Spark by --master or --conf."
    add_options(parser, f"--out DIR  folder of the tables; default: LAKE/_tables/{job}/batch, or .../stream")
    add_stream(parser, every="1 minute", late=None)


def _run(options: argparse.Namespace, *, events: bool) -> None:
    mode = "stream" if options.stream else "batch"
    out = options.out or f"{options.lake.rstrip('/')}/{job_path('audit' if events else 'history', mode)}"
    audit_options = AuditOptions(lake=options.lake, out=out.rstrip("/"), storage=storage_of(options), events=events)
    with job_runner(options) as runner:
        if options.stream:
            _follow(runner, options, audit_options)
        else:
            counts = audit_lake(runner, audit_options, print_line)
            print_line(f"Wrote {sum(counts.values())} rows to {audit_options.out}")


def _follow(runner: Runner, options: argparse.Namespace, audit_options: AuditOptions) -> None:
    stream = AuditStream(runner, audit_options)
    print_line(f"Following {audit_options.lake}")

    def step(until: LakeVersions | None) -> bool:
        rows = stream.step(until)
        if rows:
            print_line(f"Read {rows} rows; the tables in {audit_options.out} include them")
        return False

    follow(runner, options, stream.lake, audit_options.table("parts"), step)


AUDIT = Subcommand(
    "audit",
    "Make tables of calls, property history, object lifetimes and availability",
    partial(_options, job="audit", tables="calls, events, property history, object lifetimes and availability"),
    partial(_run, events=True),
    spark=True,
)
HISTORY = Subcommand(
    "history",
    "Make tables of property history, object lifetimes and availability",
    partial(
        _options,
        job="history",
        tables="property history, object lifetimes and availability, as audit does, without events",
    ),
    partial(_run, events=False),
    spark=True,
)
