"""The log that the options of the command line ask for."""

from __future__ import annotations

import argparse

from qmf.broker.daemon.log_output import SYSLOG, LineForm, LogOutput, LogWriter
from qmf.broker.daemon.log_rules import LogRules
from qmf.broker.daemon.options import DEFAULT_RULE

_STREAMS = ("stderr", "stdout", "syslog")


def log_writer(options: argparse.Namespace) -> LogWriter:
    """The log with its rules and the form of its lines.

    Raises:
        RuleError: a rule is invalid.
    """
    enabled = list(options.log_enable)
    if options.trace:
        enabled.append("trace+")
    if options.verbose:
        enabled.append("debug+")
    form = LineForm(
        prefix=options.log_prefix,
        time=options.log_time,
        category=options.log_category,
        level=options.log_level,
        thread=options.log_thread,
        source=options.log_source,
        function=options.log_function,
        precise=options.log_hires_timestamp,
    )
    return LogWriter(LogRules.parse(enabled or [DEFAULT_RULE], options.log_disable), form)


def log_output(options: argparse.Namespace, syslog: str = SYSLOG) -> LogOutput:
    """Where the log goes: by default to standard error, in the background to the syslog.

    Args:
        syslog: socket of the system's log. Without one, a broker in the background logs to files alone.
    """
    named = options.log_output
    files = (*options.log_to_file, *(item for item in named if item not in _STREAMS))
    if options.daemon:
        # Standard error and output are gone.
        wanted = _default(options.log_to_syslog, "syslog" in named or (not named and not files and _exists(syslog)))
        stderr = stdout = False
    else:
        wanted = _default(options.log_to_syslog, "syslog" in named)
        stderr = _default(options.log_to_stderr, not named or "stderr" in named)
        stdout = options.log_to_stdout or "stdout" in named
    return LogOutput(
        stderr=stderr,
        stdout=stdout,
        files=files,
        syslog=wanted,
        syslog_name=options.syslog_name,
        syslog_facility=options.syslog_facility,
    )


def _default(given: bool | None, default: bool) -> bool:
    return default if given is None else given


def _exists(path: str) -> bool:
    from pathlib import Path

    return Path(path).exists()
