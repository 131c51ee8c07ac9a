"""The subcommands of `qmf-pipeline`, in the order in which `--help` lists them.

A new subcommand is a module here with a `Subcommand`, and a line in `COMMANDS`. Modules import Spark only when their
command runs.
"""

from __future__ import annotations

from qmf.pipeline.commands import (
    alerts,
    audit,
    correlate,
    maintenance,
    mirror,
    record,
    report,
    rollup,
    silences,
)
from qmf.pipeline.commands.base import Subcommand

COMMANDS: tuple[Subcommand, ...] = (
    record.COMMAND,
    maintenance.COMPACT,
    maintenance.RETAIN,
    mirror.COMMAND,
    rollup.COMMAND,
    correlate.COMMAND,
    alerts.COMMAND,
    silences.COMMAND,
    audit.COMMAND,
    report.COMMAND,
)
