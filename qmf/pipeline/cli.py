"""`qmf-pipeline`: records a bus into a lake, keeps the lake in order, and runs the jobs over it.

Exit codes: 0 done or ended by a signal, 2 wrong arguments, no connection, a library that is missing, or a file system
that refused.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import logging
import signal
import sys
import threading
import tomllib
from collections.abc import Sequence
from pathlib import Path

from qmf._version import __version__
from qmf.console.aio import Client
from qmf.errors import QmfError
from qmf.pipeline import upkeep
from qmf.pipeline.arrow import library
from qmf.pipeline.buffers import Written
from qmf.pipeline.errors import MissingExtraError, PipelineError
from qmf.pipeline.lake import Lake
from qmf.pipeline.recorder import DEFAULT_CELLS, DEFAULT_INTERVAL, Recorder, RecorderCounts

DEFAULT_URL = "amqp://127.0.0.1:5672"

_EXIT_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand.

    Args:
        argv: arguments without the program's name; None takes those of the process.

    Returns:
        the exit code.

    Raises:
        SystemExit: with 2 for wrong arguments, with 0 for `--help` and `--version`.
    """
    parser, commands = _parsers()
    options = _options(parser, commands, argv)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    try:
        options.run(options)
    except QmfError as error:
        print(f"qmf-pipeline: {error}", file=sys.stderr)
        return _EXIT_ERROR
    except KeyboardInterrupt:
        return 0
    return 0


def _options(
    parser: argparse.ArgumentParser, commands: dict[str, argparse.ArgumentParser], argv: Sequence[str] | None
) -> argparse.Namespace:
    """Options of the command line over those of the file."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    finder = argparse.ArgumentParser(add_help=False)
    finder.add_argument("--config", type=Path)
    file = finder.parse_known_args(arguments)[0].config
    if file is None or arguments[0] not in commands:
        return parser.parse_args(arguments)
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        parser.error(f"{file}: {error}")
    command, own = commands[arguments[0]], settings.get(arguments[0], {})
    known = {action.dest: action for action in command._actions}
    for name, value in {**settings.get("all", {}), **own}.items():
        action = known.get(name.replace("-", "_"))
        if action is None:
            if name in own:
                command.error(f"{file}: {arguments[0]} has no option {name!r}")
            continue
        action.default = action.type(str(value)) if callable(action.type) else value
        action.required = False
    return parser.parse_args(arguments)


def _parsers() -> tuple[argparse.ArgumentParser, dict[str, argparse.ArgumentParser]]:
    parser = argparse.ArgumentParser(prog="qmf-pipeline", description="Store, join and roll up what a QMF bus says.")
    parser.add_argument("--version", action="version", version=f"qmf-pipeline {__version__}")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands: dict[str, argparse.ArgumentParser] = {}

    def add(name: str, help: str) -> argparse.ArgumentParser:
        command = commands[name] = subparsers.add_parser(name, help=help, description=f"{help}.")
        command.add_argument(
            "--config", type=Path, metavar="FILE", help="TOML file with options in tables [all] and [COMMAND]"
        )
        command.add_argument("--lake", required=True, metavar="DIR", help="folder of the lake")
        command.add_argument("-v", "--verbose", action="store_true", help="log more")
        return command

    record = add("record", "Record a bus into a lake until a signal ends it")
    record.add_argument("-b", "--broker", default=DEFAULT_URL, metavar="URL", help="default: %(default)s")
    record.add_argument("--domain", default="default", help="QMF domain; default: %(default)s")
    record.add_argument("--name", default="recorder", help="tells several recorders of a lake apart")
    record.add_argument(
        "--interval", type=_positive, default=DEFAULT_INTERVAL, metavar="S", help="seconds from commit to commit"
    )
    record.add_argument(
        "--max-cells", type=int, default=DEFAULT_CELLS, metavar="N", help="values that wait at most for a commit"
    )
    record.set_defaults(run=_record)

    compact = add("compact", "Join the small files of past days")
    compact.add_argument("--before", metavar="DAY", help="only days before this one, e.g. 2030-01-31; default: today")
    compact.add_argument("--target-mb", type=_positive, default=128.0, metavar="MB", help="size of joined files")
    compact.set_defaults(run=_compact)

    retain = add("retain", "Drop days that are too old, and empty the trash")
    retain.add_argument("--days", type=int, required=True, metavar="N", help="days before today that are kept")
    retain.add_argument(
        "--grace-days", type=float, default=float(upkeep.GRACE_DAYS), metavar="N", help="days in the trash"
    )
    retain.set_defaults(run=_retain)

    rollup = add("rollup", "Roll samples up by windows of time")
    rollup.add_argument("--out", metavar="DIR", help="where the tables go; default: LAKE/_tables/rollup")
    rollup.add_argument("--master", default="local[*]", help="which Spark; default: %(default)s")
    rollup.add_argument(
        "--size", dest="sizes", type=_words, default=("1m",), metavar="SIZES", help="windows, e.g. 1m,15m,1h"
    )
    rollup.add_argument(
        "--class", dest="classes", type=_words, default=(), metavar="NAMES", help="e.g. cpu,qmf.host:disk; default: all"
    )
    rollup.add_argument("--from", dest="first", metavar="DAY", help="first day of a batch, e.g. 2030-01-31")
    rollup.add_argument("--to", dest="last", metavar="DAY", help="last day of a batch")
    rollup.add_argument("--continued", action="store_true", help="counters outlive restarts of their agents")
    rollup.add_argument("--stream", action="store_true", help="follow the lake until a signal ends it")
    rollup.add_argument("--late", default="10 minutes", metavar="TIME", help="how long a stream waits for late data")
    rollup.add_argument("--every", default="10 seconds", metavar="TIME", help="time from batch to batch of a stream")
    rollup.set_defaults(run=_rollup)
    return parser, commands


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _positive(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be a number above 0, not {text!r}")
    return value


def _local(lake: str) -> Lake:
    scheme, colon, _rest = lake.partition("://")
    if colon and scheme != "file":
        raise PipelineError(f"{lake}: files are written to a folder of this machine, or one that is mounted on it")
    return Lake(Path(lake.removeprefix("file://")))


def _record(options: argparse.Namespace) -> None:
    library()  # before anything is connected
    counts = asyncio.run(_recording(options))
    _say(
        f"Wrote {counts.written.rows} rows in {counts.written.files} files, {counts.written.size} bytes; "
        f"{counts.lost} messages lost on the way, {counts.misfits} values left out"
    )


async def _recording(options: argparse.Namespace) -> RecorderCounts:
    client = Client(options.broker, domain=options.domain, discover=True)
    recorder = Recorder(
        client,
        _local(options.lake),
        name=options.name,
        interval=options.interval,
        max_cells=options.max_cells,
        on_commit=_committed,
    )
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, recorder.stop)
    _say(f"Recording {client.url} into {options.lake} as {options.name}")
    await recorder.run()
    counts = recorder.counts
    if counts.removed or counts.entered:
        _say(f"After a run that was killed: {counts.removed} temporary files removed, {counts.entered} files entered")
    return counts


def _committed(written: Written) -> None:
    _say(f"Committed {written.rows} rows in {written.files} files, {written.size} bytes")


def _compact(options: argparse.Namespace) -> None:
    done = upkeep.compact(
        _local(options.lake), before=options.before, target_bytes=int(options.target_mb * 1024 * 1024)
    )
    _say(f"Joined {done.joined} files into {done.made}")


def _retain(options: argparse.Namespace) -> None:
    done = upkeep.retain(_local(options.lake), options.days, grace_days=options.grace_days)
    _say(f"Dropped {done.dropped} files, swept {done.swept} out of the trash")


def _rollup(options: argparse.Namespace) -> None:
    if importlib.util.find_spec("pyspark") is None:
        raise MissingExtraError("pyspark")
    from qmf.pipeline import jobs
    from qmf.pipeline.spark import session, tables

    spark = session(options.master, progress=sys.stderr.isatty())
    spark.sparkContext.setLogLevel("ERROR")
    try:
        tables(options.lake, spark)
        chosen = jobs.RollupOptions(
            lake=options.lake,
            out=options.out or f"{options.lake.rstrip('/')}/_tables/rollup",
            sizes=options.sizes,
            classes=options.classes,
            first=options.first,
            last=options.last,
            late=options.late,
            continued=options.continued,
        )
        if not options.stream:
            _say(f"Wrote {jobs.rollup_batch(spark, chosen, _say)} rows to {chosen.out}")
            return
        queries = jobs.rollup_stream(spark, chosen, every=options.every)
        _say(f"Following {options.lake} with {len(queries)} queries")
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        while not stop.wait(0.2):
            failed = next((query for query in queries if not query.isActive), None)
            if failed is not None:
                raise PipelineError(f"a query ended: {failed.exception()}")
        read, late = jobs.metrics(queries)
        for query in queries:
            query.stop()
        _say(f"Read {read} rows in the last batches; {late} came too late")
    finally:
        spark.stop()


def _say(text: str) -> None:
    print(text, flush=True)
