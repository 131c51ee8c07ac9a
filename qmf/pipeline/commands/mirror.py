"""`qmf-pipeline mirror`."""

from __future__ import annotations

import argparse

from qmf.pipeline.commands.base import Subcommand, days, local_lake, positive, print_line, spark_session
from qmf.pipeline.lake.maintenance import GRACE_DAYS
from qmf.pipeline.shutdown import stop_on_signals


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--to", required=True, metavar="URL", help="any Hadoop path, e.g. hdfs://host/lake or s3a://..."
    )
    parser.add_argument("--stream", action="store_true", help="continue until a signal ends it")
    parser.add_argument(
        "--interval", type=positive, default=10.0, metavar="S", help="seconds between checks for new commits"
    )
    parser.add_argument(
        "--grace-days", type=days, default=float(GRACE_DAYS), metavar="N", help="days in the copy's trash"
    )


def _run(options: argparse.Namespace) -> None:
    lake = local_lake(options.lake)
    with stop_on_signals() as stop, spark_session(options) as spark:
        from qmf.pipeline.spark.hadoop import HadoopFolder
        from qmf.pipeline.spark.mirror import mirror

        target = HadoopFolder(spark, options.to)
        while True:
            done = mirror(lake, target, grace_days=options.grace_days, wanted=lambda: not stop.is_set())
            if done.entries or done.files or not options.stream:
                print_line(f"Copied {done.files} files in {done.entries} commits; {done.removed} files removed")
            if not options.stream or stop.wait(options.interval):
                break


COMMAND = Subcommand(
    "mirror", "Copy a lake to a Hadoop file system, and keep the copy up to date", _options, _run, spark=True
)
