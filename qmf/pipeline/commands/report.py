"""`qmf-pipeline report`."""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from qmf.pipeline.commands.base import Subcommand, add_classes, print_line, spark_session
from qmf.pipeline.errors import PipelineError


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", type=Path, default=Path("report.html"), metavar="FILE", help="page to write; default: %(default)s"
    )
    parser.add_argument("--title", default="QMF report", help="title of the page; default: %(default)s")
    parser.add_argument("--from", dest="first", metavar="TIME", help="e.g. 2030-01-31 or 2030-01-31T12:00, in UTC")
    parser.add_argument("--to", dest="last", metavar="TIME", help="the same; default: the end of the recording")
    parser.add_argument("--for", dest="length", metavar="LENGTH", help="e.g. 90m, 12h, 7d; default: 1d")
    parser.add_argument(
        "--alerts", metavar="DIR", help="folder of the table of alerts; default: LAKE/_tables/correlate"
    )
    parser.add_argument("--top", type=_count, default=10, metavar="N", help="rows of each table; default: %(default)s")
    parser.add_argument("--continued", action="store_true", help="counters outlive restarts of their agents")
    add_classes(parser)


def _run(options: argparse.Namespace) -> None:
    from qmf.pipeline.report import svg
    from qmf.pipeline.report.page import html
    from qmf.pipeline.report.time_range import parse_time_range

    svg.import_matplotlib()  # before Spark is started
    parse_time_range(options.first, options.last, options.length, time.time_ns())
    with spark_session(options) as spark:
        from qmf.pipeline.report import collect
        from qmf.pipeline.spark.batch_progress import report_progress

        newest = collect.newest(spark, options.lake)
        time_range = parse_time_range(options.first, options.last, options.length, newest)
        report_options = collect.ReportOptions(
            lake=options.lake,
            alerts=options.alerts or f"{options.lake.rstrip('/')}/_tables/correlate",
            title=options.title,
            classes=options.classes,
            top=options.top,
            continued=options.continued,
            made_ns=time.time_ns(),
        )
        with report_progress(spark, "report", print_line):
            report = collect.collect(spark, report_options, time_range, print_line)
    text = html(report)
    try:
        options.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"{options.output}: {error.strerror or error}") from error
    print_line(
        f"Wrote {options.output}, {len(text.encode()):,} bytes"
        + ("; nothing was recorded in this time" * report.is_empty)
    )


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return value


COMMAND = Subcommand("report", "Make a page about a time range", _options, _run, spark=True)
