"""`qmf-pipeline compact` and `qmf-pipeline retain`."""

from __future__ import annotations

import argparse
import sys

from qmf.pipeline.commands.base import Subcommand, check_lake, date, day_count, days, local_lake, positive, print_line
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.lake import maintenance


def _compact_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--before", type=date, metavar="DAY", help="only days before this one, e.g. 2030-01-31; default: today"
    )
    parser.add_argument("--target-mb", type=positive, default=128.0, metavar="MB", help="size of compacted files")


def _compact(options: argparse.Namespace) -> None:
    check_lake(options.lake)
    done = maintenance.compact(
        local_lake(options.lake), before=options.before, target_bytes=int(options.target_mb * 1024 * 1024)
    )
    print_line(f"Compacted {done.compacted} files into {done.written}")


def _retain_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--days", type=day_count, required=True, metavar="N", help="days before today that are kept")
    parser.add_argument(
        "--grace-days", type=days, default=float(maintenance.GRACE_DAYS), metavar="N", help="days in the trash"
    )
    parser.add_argument("--yes", action="store_true", help="drop more than half of the files without a question")


def _retain(options: argparse.Namespace) -> None:
    check_lake(options.lake)
    done = maintenance.retain(
        local_lake(options.lake),
        options.days,
        grace_days=options.grace_days,
        may_drop=None if options.yes else _may_drop,
    )
    print_line(f"Dropped {done.dropped} files, deleted {done.deleted} from the trash")


def _may_drop(count: int, total: int) -> bool:
    """Ask whether more than half of a lake may go.

    Raises:
        PipelineError: nobody can be asked.
    """
    what = f"{count:,} of {total:,} files, more than half of the lake"
    if not sys.stdin.isatty():
        raise PipelineError(f"this would drop {what}; --yes does so")
    return input(f"Drop {what}? [y/N] ").strip().lower() in ("y", "yes")


COMPACT = Subcommand("compact", "Compact the small files of past days", _compact_options, _compact)
RETAIN = Subcommand("retain", "Drop days that are too old, and empty the trash", _retain_options, _retain)
