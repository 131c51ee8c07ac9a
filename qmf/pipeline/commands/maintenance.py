"""`qmf-pipeline compact` and `qmf-pipeline retain`."""

from __future__ import annotations

import argparse

from qmf.pipeline.commands.base import Subcommand, local_lake, positive, print_line
from qmf.pipeline.lake import maintenance


def _compact_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--before", metavar="DAY", help="only days before this one, e.g. 2030-01-31; default: today")
    parser.add_argument("--target-mb", type=positive, default=128.0, metavar="MB", help="size of compacted files")


def _compact(options: argparse.Namespace) -> None:
    done = maintenance.compact(
        local_lake(options.lake), before=options.before, target_bytes=int(options.target_mb * 1024 * 1024)
    )
    print_line(f"Compacted {done.compacted} files into {done.written}")


def _retain_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--days", type=int, required=True, metavar="N", help="days before today that are kept")
    parser.add_argument(
        "--grace-days", type=float, default=float(maintenance.GRACE_DAYS), metavar="N", help="days in the trash"
    )


def _retain(options: argparse.Namespace) -> None:
    done = maintenance.retain(local_lake(options.lake), options.days, grace_days=options.grace_days)
    print_line(f"Dropped {done.dropped} files, deleted {done.deleted} from the trash")


COMPACT = Subcommand("compact", "Compact the small files of past days", _compact_options, _compact)
RETAIN = Subcommand("retain", "Drop days that are too old, and empty the trash", _retain_options, _retain)
