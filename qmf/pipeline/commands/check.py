"""`qmf-pipeline check`."""

from __future__ import annotations

import argparse
import itertools

from qmf.pipeline.commands.base import Subcommand, open_lake, print_line
from qmf.pipeline.commands.running import job_runner
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.maintenance.checking import LakeCheck
from qmf.pipeline.record.checking import check_pending


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repair", action="store_true", help="repair what can be; no recorder may run meanwhile")


def _run(options: argparse.Namespace) -> None:
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


COMMAND = Subcommand("check", "Find what is damaged in a lake, and repair it", _options, _run, spark=True)
