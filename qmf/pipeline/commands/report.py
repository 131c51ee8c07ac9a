"""`qmf-pipeline report`."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from qmf._option_values import count, whole_number_between
from qmf.pipeline.commands.base import Subcommand, add_classes, add_options, print_line, storage_of
from qmf.pipeline.commands.running import job_runner
from qmf.pipeline.errors import PipelineError

if TYPE_CHECKING:
    from qmf.pipeline.runners.runner import Runner


def _options(parser: argparse.ArgumentParser) -> None:
    text = """
        --output FILE  page to write, - for standard output; default: %(default)s
        --title TITLE  title of the page; default: %(default)s
        --from TIME  e.g. 2030-01-31, yesterday or 2030-01-31T12:00, in UTC
        --to TIME  the same; default: the end of the recording
        --for LENGTH  e.g. 90m, 12h, 7d; default: 1d
        --compare RANGE  another time to compare with: FROM..TO, previous, or how long before, e.g. 1d or 7d
        --alerts DIR  folder of the table of alerts; default: LAKE/_tables/correlate
        --audit DIR  folder of the tables of audit or history; default: those inside the lake
        --rollups DIR  folder of the tables of rollup; default: LAKE/_tables/rollup
        --top N  rows of each table; default: %(default)s
        --usual-days N  days before that say what values are usual, 0 to 90; default: %(default)s
        --continued  counters outlive restarts of their agents
        --own  include what agents and consoles created on the broker for themselves
    """
    add_options(
        parser,
        text,
        output={"type": Path, "default": Path("report.html")},
        title={"metavar": None, "default": "QMF report"},
        top={"type": count, "default": 10},
        usual_days={"type": whole_number_between(0, 90), "default": 7},
        **{"from": {"dest": "first"}, "to": {"dest": "last"}, "for": {"dest": "length"}},
    )
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
