"""Where the job of a command runs: in its process, or on Spark where `--master` or `--conf` asks for it."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from qmf.pipeline.commands.base import DEFAULT_MASTER, check_followed, check_lake, open_lake
from qmf.pipeline.errors import LakeError, MissingExtraError
from qmf.pipeline.runners.process import ProcessRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from qmf.pipeline.runners.runner import Runner


#: Rows of a lake that are few: a job over them takes seconds.
SMALL_ROWS = 2_000_000


@contextmanager
def job_runner(options: argparse.Namespace) -> Iterator[Runner]:
    """Where a job runs, which is printed.

    Raises:
        MissingExtraError: it is Spark, and pyspark is not installed.
        PipelineError: there is no lake, and the job does not follow it; or as of `spark_session`.
    """
    if not runs_on_spark(options):
        _check_input(options)
        runner = ProcessRunner()
        _print_place(options, runner)
        yield runner
        return
    with spark_session(options) as spark:
        from qmf.pipeline.runners.spark import SparkRunner
        from qmf.pipeline.spark_access.batch_progress import report_progress

        on_spark = SparkRunner(spark)
        _print_place(options, on_spark)
        following = getattr(options, "stream", False)
        with nullcontext() if following else report_progress(spark, options.command, _print_progress):
            yield on_spark


def runs_on_spark(options: argparse.Namespace) -> bool:
    """True if the command line asks for Spark."""
    return options.master is not None or bool(options.conf)


def _print_progress(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print_place(options: argparse.Namespace, runner: Runner) -> None:
    print(f"qmf-pipeline: {options.command} runs {runner.place}", file=sys.stderr, flush=True)


@contextmanager
def spark_session(options: argparse.Namespace) -> Iterator[SparkSession]:
    """The session that a subcommand runs on, stopped at the end.

    Raises:
        MissingExtraError: pyspark is not installed.
        PipelineError: no Java, or one that is too old; or there is no lake, and the subcommand does not follow it; or
            Spark failed: one line with the cause, and with `--verbose` all that it says.
    """
    if not _names_other_file_system(options):
        _check_input(options)
    if importlib.util.find_spec("pyspark") is None:
        raise MissingExtraError("pyspark")
    from py4j.protocol import Py4JError

    from qmf.pipeline.commands.spark_failures import JavaOutput, spark_failures
    from qmf.pipeline.spark_access.job_settings import job_settings
    from qmf.pipeline.spark_access.session import session

    output = None if options.verbose else JavaOutput()
    with spark_failures(output):
        with output.capture() if output is not None else nullcontext():
            spark = session(
                options.master or DEFAULT_MASTER,
                settings={**job_settings(small=_is_small(options)), **dict(options.conf)},
                progress=sys.stderr.isatty(),
                data_source=False,  # streams register it
            )
        try:
            spark.sparkContext.setLogLevel("ERROR")
            yield spark
        finally:
            with suppress(Py4JError, OSError):  # Java may have ended first, by the same signal
                spark.stop()


def _names_other_file_system(options: argparse.Namespace) -> bool:
    """True if paths without a scheme are not those of this machine."""
    return "spark.hadoop.fs.defaultFS" in dict(options.conf)


def _is_small(options: argparse.Namespace) -> bool:
    """True if the lake of a batch has few rows."""
    if getattr(options, "stream", False) or _names_other_file_system(options):
        return False
    lake = open_lake(options)
    try:
        return sum(lake.table(path).snapshot().rows for path in lake.paths()) <= SMALL_ROWS
    except LakeError:
        return False  # the job says what is wrong


def _check_input(options: argparse.Namespace) -> None:
    if getattr(options, "stream", False):
        check_followed(options.lake)
    else:
        check_lake(options.lake)
