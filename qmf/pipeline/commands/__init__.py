"""The subcommands of `qmf-pipeline`, in the order in which `--help` lists them.

A new subcommand is a module here with a `Subcommand`, and a line in `COMMANDS`. Modules import Spark only when their
command runs.
"""

from __future__ import annotations

from qmf.pipeline.commands import alerts, audit, correlate, maintenance, record, report, rollup
from qmf.pipeline.commands.base import Subcommand

COMMANDS: tuple[Subcommand, ...] = (
    record.COMMAND,
    maintenance.OPTIMIZE,
    maintenance.COMPACT,
    maintenance.RETAIN,
    maintenance.VACUUM,
    maintenance.CHECK,
    rollup.COMMAND,
    correlate.CORRELATE,
    correlate.RULES,
    alerts.ALERTS,
    alerts.SILENCES,
    audit.AUDIT,
    audit.HISTORY,
    report.COMMAND,
)
