"""`qmf-pipeline report`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from qmf._option_values import count, whole_number_between
from qmf.pipeline.commands.base import Subcommand, add_classes, print_line, storage_of
from qmf.pipeline.commands.running import job_runner
from qmf.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from qmf.pipeline.runners.runner import Runner


def _options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "--output",
        type=Path,
        default=Path("report.html"),
        metavar="FILE",
        help="page to write, - for standard output; default: %(default)s",
    )
    add("--title", default="QMF report", help="title of the page; default: %(default)s")
    add("--from", dest="first", metavar="TIME", help="e.g. 2030-01-31, yesterday or 2030-01-31T12:00, in UTC")
    add("--to", dest="last", metavar="TIME", help="the same; default: the end of the recording")
    add("--for", dest="length", metavar="LENGTH", help="e.g. 90m, 12h, 7d; default: 1d")
    add(
        "--compare",
        metavar="RANGE",
        help="another time to compare with: FROM..TO, previous, or how long before, e.g. 1d or 7d",
    )
    add("--alerts", metavar="DIR", help="folder of the table of alerts; default: LAKE/_tables/correlate")
    add("--audit", metavar="DIR", help="folder of the tables of audit or history; default: those inside the lake")
    add("--rollups", metavar="DIR", help="folder of the tables of rollup; default: LAKE/_tables/rollup")
    add("--top", type=count, default=10, metavar="N", help="rows of each table; default: %(default)s")
    add(
        "--usual-days",
        type=whole_number_between(0, 90),
        default=7,
        metavar="N",
        help="days before that say what values are usual, 0 to 90; default: %(default)s",
    )
    add("--continued", action="store_true", help="counters outlive restarts of their agents")
    add("--own", action="store_true", help="include what agents and consoles created on the broker for themselves")
    add_classes(parser)


def _run(options: argparse.Namespace) -> None:
    from qmf.pipeline.report.plots import import_matplotlib
    from qmf.pipeline.report.time_range import parse_compared, parse_time_range

    import_matplotlib()  # before anything is read
    given = parse_time_range(options.first, options.last, options.length, time.time_ns())
    if options.compare is not None:
        parse_compared(options.compare, given)
    with job_runner(options) as runner:
        _report(runner, options)


def _report(runner: Runner, options: argparse.Namespace) -> None:
    from qmf.pipeline.report.collect import ReportOptions, collect
    from qmf.pipeline.report.page import html
    from qmf.pipeline.report.source import end_of_recording
    from qmf.pipeline.report.time_range import parse_compared, parse_time_range

    time_range = parse_time_range(
        options.first, options.last, options.length, end_of_recording(runner, options.lake, storage_of(options))
    )
    report_options = ReportOptions(
        lake=options.lake,
        alerts=options.alerts,
        audit=options.audit,
        rollups=options.rollups,
        title=options.title,
        classes=options.classes,
        top=options.top,
        continued=options.continued,
        own=options.own,
        compare=None if options.compare is None else parse_compared(options.compare, time_range),
        usual_days=options.usual_days,
        made_ns=time.time_ns(),
        storage=storage_of(options),
    )
    to_output = str(options.output) == "-"
    text = html(collect(runner, report_options, time_range, (lambda _line: None) if to_output else print_line))
    if to_output:
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    try:
        options.output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise PipelineError(f"{options.output}: {error.strerror or error}") from error
    print_line(f"Wrote {options.output}, {len(text.encode()):,} bytes")


COMMAND = Subcommand("report", "Make a page about a time range", _options, _run, spark=True)
