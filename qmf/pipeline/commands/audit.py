"""`qmf-pipeline audit` and `history`: the tables of an audit, or those of them that are about agents and objects."""

from __future__ import annotations

import argparse

from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.stream import AuditStream
from qmf.pipeline.audit.tables import AuditOptions
from qmf.pipeline.commands.base import Subcommand, duration, print_line, storage_of
from qmf.pipeline.commands.running import job_runner
from qmf.pipeline.lake.lake_versions import LakeVersions
from qmf.pipeline.lake.table_paths import CHECKPOINT, job_path
from qmf.pipeline.runners.runner import Pace, Runner
from qmf.pipeline.shutdown import stop_on_signals
from qmf.views.times import parse_duration


def _audit_options(parser: argparse.ArgumentParser) -> None:
    _options(parser, "calls, events, property history, object lifetimes and availability", "audit")


def _history_options(parser: argparse.ArgumentParser) -> None:
    _options(parser, "property history, object lifetimes and availability, as audit does, without events", "history")


def _options(parser: argparse.ArgumentParser, tables: str, job: str) -> None:
    parser.description = f"Make tables of {tables}, in this process, or on Spark by --master or --conf."
    parser.add_argument(
        "--out", metavar="DIR", help=f"folder of the tables; default: LAKE/_tables/{job}/batch, or .../stream"
    )
    parser.add_argument("--stream", action="store_true", help="follow the lake until a signal ends it")
    parser.add_argument("--once", action="store_true", help="a stream ends when it has read all that is in the lake")
    parser.add_argument(
        "--every", type=duration, default="1 minute", metavar="TIME", help="time from batch to batch of a stream"
    )


def _audit(options: argparse.Namespace) -> None:
    _run(options, events=True)


def _history(options: argparse.Namespace) -> None:
    _run(options, events=False)


def _run(options: argparse.Namespace, *, events: bool) -> None:
    mode = "stream" if options.stream else "batch"
    out = options.out or f"{options.lake.rstrip('/')}/{job_path('audit' if events else 'history', mode)}"
    audit_options = AuditOptions(lake=options.lake, out=out.rstrip("/"), storage=storage_of(options), events=events)
    with job_runner(options) as runner:
        if options.stream:
            _follow(runner, options, audit_options)
        else:
            _print_rows(audit_lake(runner, audit_options, print_line), audit_options)


def _follow(runner: Runner, options: argparse.Namespace, audit_options: AuditOptions) -> None:
    stream = AuditStream(runner, audit_options)
    print_line(f"Following {audit_options.lake}")

    def step(until: LakeVersions | None) -> bool:
        rows = stream.step(until)
        if rows:
            print_line(f"Read {rows} rows; the tables in {audit_options.out} include them")
        return False

    pace = Pace(every=parse_duration(options.every) / 10**9, once=options.once)
    with stop_on_signals() as stop:
        runner.follow(stream.lake, f"{audit_options.table('parts').url}/{CHECKPOINT}", step, pace, stop)


def _print_rows(counts: dict[str, int], options: AuditOptions) -> None:
    print_line(f"Wrote {sum(counts.values())} rows to {options.out}")


AUDIT = Subcommand(
    "audit",
    "Make tables of calls, property history, object lifetimes and availability",
    _audit_options,
    _audit,
    spark=True,
)
HISTORY = Subcommand(
    "history",
    "Make tables of property history, object lifetimes and availability",
    _history_options,
    _history,
    spark=True,
)
