"""`qmf-pipeline rollup`."""

from __future__ import annotations

import argparse
from contextlib import closing

from qmf.pipeline.commands.base import (
    Subcommand,
    add_classes,
    add_days,
    add_options,
    add_stream,
    comma_separated,
    print_line,
    storage_of,
)
from qmf.pipeline.commands.running import follow, job_runner, runs_on_spark
from qmf.pipeline.lake.lake_versions import LakeVersions
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.stream import RollupStream, TaskRollupStream
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.pipeline.runners.runner import Runner


def _options(parser: argparse.ArgumentParser) -> None:
    parser.description = "Roll samples up by windows of time, in this process, or on Spark by --master or --conf."
    text = """
        --out DIR  folder of the tables; default: LAKE/_tables/rollup
        --size SIZES  windows, e.g. 1m,15m,1h
        --timezone ZONE  windows by local days, e.g. of Europe/Berlin; default: UTC
        --continued  counters outlive restarts of their agents
    """
    sizes = {"dest": "sizes", "type": comma_separated, "default": ("1m",)}
    add_options(parser, text, size=sizes, timezone={"default": "UTC"})
    add_classes(parser)
    add_days(parser)
    add_stream(parser)


def _run(options: argparse.Namespace) -> None:
    rollup_options = RollupOptions(
        lake=options.lake,
        out=options.out or f"{options.lake.rstrip('/')}/_tables/rollup",
        sizes=options.sizes,
        classes=options.classes,
        first=options.first,
        last=options.last,
        late=options.late,
        continued=options.continued,
        timezone=options.timezone,
        storage=storage_of(options),
    )
    rollup_options.check()  # before Java is started
    with job_runner(options) as runner:
        if options.stream:
            on_spark = runs_on_spark(options)
            stream = TaskRollupStream(runner, rollup_options) if on_spark else RollupStream(rollup_options)
            with closing(stream):
                rows = _follow(runner, options, stream)
        else:
            rows = roll_up_lake(runner, rollup_options, print_line)
    print_line(f"Wrote {rows} rows to {rollup_options.out}")


def _follow(runner: Runner, options: argparse.Namespace, stream: RollupStream) -> int:
    """Follow the lake until a signal, or until all is read that is there now; returns rows written.

    Then the last windows are written although later samples may belong to them, and a later stream replaces them.
    """
    print_line(f"Following {options.lake}")

    def step(until: LakeVersions | None) -> bool:
        rows = stream.step(until, last=options.once)
        if rows:
            print_line(f"Wrote {rows} rows")
        return False

    try:
        follow(runner, options, stream.lake, stream.table, step)
    finally:
        print_line(f"rollup by {','.join(options.sizes)}: {stream.counts}")
    return stream.counts.rows


COMMAND = Subcommand("rollup", "Roll samples up by windows of time", _options, _run, spark=True)
