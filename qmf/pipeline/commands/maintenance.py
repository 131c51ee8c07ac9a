"""`qmf-pipeline optimize`, `retain`, `vacuum` and `check`."""

from __future__ import annotations

import argparse
import itertools
import sys

from qmf._option_values import number, positive_number, whole_number
from qmf.pipeline.commands.base import Subcommand, add_options, check_lake, date, open_lake, print_line
from qmf.pipeline.commands.running import job_runner
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.lake import maintenance
from qmf.pipeline.maintenance.checking import LakeCheck
from qmf.pipeline.maintenance.optimizing import optimize_lake
from qmf.pipeline.record.writer_state import check_pending

_MB = 1024 * 1024


def _optimize_options(parser: argparse.ArgumentParser) -> None:
    text = """
        --before DAY  only days before this one, e.g. 2030-01-31 or today; default: all
        --target-mb MB  size of files at most
    """
    size = {"type": positive_number, "default": maintenance.TARGET_BYTES / _MB}
    add_options(parser, text, before={"type": date}, target_mb=size)


def _optimize(options: argparse.Namespace) -> None:
    target_bytes = max(1, int(options.target_mb * _MB))
    with job_runner(options) as runner:
        done = optimize_lake(runner, open_lake(options), before=options.before, target_bytes=target_bytes)
    print_line(f"Combined {done.combined} files into {done.written}")


def _retain_options(parser: argparse.ArgumentParser) -> None:
    add_options(parser, "--days N  days before today that are kept", days={"type": whole_number, "required": True})
    _vacuum_options(parser)
    add_options(parser, "--yes  drop more than half of the rows without a question")


def _retain(options: argparse.Namespace) -> None:
    check_lake(options.lake)
    done = maintenance.retain(
        open_lake(options), options.days, grace_days=options.grace_days, may_drop=None if options.yes else _may_drop
    )
    print_line(f"Dropped {done.rows} rows, deleted {done.deleted} files")


def _vacuum_options(parser: argparse.ArgumentParser) -> None:
    grace = {"type": number, "default": float(maintenance.GRACE_DAYS)}
    add_options(parser, "--grace-days N  days that files stay which the last version does not need", grace_days=grace)


def _vacuum(options: argparse.Namespace) -> None:
    check_lake(options.lake)
    done = maintenance.vacuum(open_lake(options), grace_days=options.grace_days)
    print_line(f"Deleted {done.deleted} files")


def _may_drop(count: int, total: int) -> bool:
    """Ask whether more than half of a lake may go; `PipelineError` if nobody can be asked."""
    what = f"{count:,} of {total:,} rows, more than half of the lake"
    if not sys.stdin.isatty():
        raise PipelineError(f"this would drop {what}; --yes does so")
    return input(f"Drop {what}? [y/N] ").strip().lower() in ("y", "yes")


OPTIMIZE = Subcommand("optimize", "Combine the small files of each day", _optimize_options, _optimize, spark=True)
COMPACT = Subcommand("compact", "Another name of optimize", _optimize_options, _optimize, spark=True)
RETAIN = Subcommand("retain", "Drop days that are too old, and vacuum", _retain_options, _retain)
VACUUM = Subcommand("vacuum", "Delete files that no version needs any more", _vacuum_options, _vacuum)


def _check_options(parser: argparse.ArgumentParser) -> None:
    add_options(parser, "--repair  repair what can be; no recorder may run meanwhile")


def _check(options: argparse.Namespace) -> None:
    damaged = repaired = 0
    with job_runner(options) as runner:
        lake = open_lake(options)
        check = LakeCheck(runner, lake, repair=options.repair)
        for finding in itertools.chain(check_pending(lake, repair=options.repair), check.findings()):
            print_line(str(finding))
            damaged += finding.is_damage
            repaired += bool(finding.repaired)
    if damaged > repaired:
        hint = "" if options.repair else "; --repair repairs what can be"
        raise PipelineError(f"{options.lake}: {damaged - repaired} things are wrong{hint}")
    print_line(f"{repaired} things repaired" if repaired else "Nothing is wrong")


CHECK = Subcommand("check", "Find what is damaged in a lake, and repair it", _check_options, _check, spark=True)
