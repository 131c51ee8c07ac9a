"""Where and how the daemon logs: lines in qpidd's form, to standard error, standard output, files and the syslog."""

from __future__ import annotations

import contextlib
import logging
import sys
import time
from collections.abc import Iterator
from logging.handlers import SysLogHandler
from pathlib import Path

import attrs

from qmf.broker.daemon.log_rules import LogRules, category, level_name

#: Where the system's log takes messages.
SYSLOG = "/dev/log"


class LogOutputError(Exception):
    """The log cannot be written; the message says where and why."""


@attrs.frozen
class LineForm:
    """What lines of the log have before the message.

    Attributes:
        prefix: text at the beginning.
        time, category, level, thread, source, function: whether they are there.
        precise: whether the time has fractions of seconds.
    """

    prefix: str = ""
    time: bool = True
    category: bool = True
    level: bool = True
    thread: bool = False
    source: bool = False
    function: bool = False
    precise: bool = False


@attrs.frozen
class LogOutput:
    """Where messages go.

    Attributes:
        stderr, stdout: to these streams.
        files: paths of files, which are appended to.
        syslog: to the system's log.
        syslog_name, syslog_facility: with these.
    """

    stderr: bool = True
    stdout: bool = False
    files: tuple[str, ...] = ()
    syslog: bool = False
    syslog_name: str = "qmf-broker"
    syslog_facility: str = "LOG_DAEMON"


class _LineFormatter(logging.Formatter):
    """Writes lines as qpidd does: ``2026-01-31 10:15:00 [Broker] warning text``."""

    def __init__(self, form: LineForm) -> None:
        super().__init__()
        self.form = form

    def format(self, record: logging.LogRecord) -> str:
        form = self.form
        parts = [form.prefix] if form.prefix else []
        if form.time:
            whole = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(record.created))
            parts.append(f"{whole}{record.created % 1:.9f}".replace("0.", ".", 1) if form.precise else whole)
        if form.category:
            parts.append(f"[{category(record.name)}]")
        if form.level:
            parts.append(level_name(record.levelno))
        if form.thread:
            parts.append(f"[{record.thread}]")
        if form.source:
            parts.append(f"{record.filename}:{record.lineno}:")
        if form.function:
            parts.append(f"{record.funcName}:")
        text = " ".join([*parts, record.getMessage()])
        return text if record.exc_info is None else f"{text}\n{self.formatException(record.exc_info)}"


class _SysLogHandler(SysLogHandler):
    """Knows our levels as well."""

    def mapPriority(self, levelName: str) -> str:
        return {"Level 25": "notice", "Level 5": "debug"}.get(levelName) or super().mapPriority(levelName)


class LogWriter:
    """The log of the process while it runs; its rules and its form may change meanwhile."""

    def __init__(self, rules: LogRules, form: LineForm) -> None:
        self._rules = rules
        self._formatter = _LineFormatter(form)
        self._files: list[logging.FileHandler] = []

    @property
    def rules(self) -> LogRules:
        """What is logged."""
        return self._rules

    @rules.setter
    def rules(self, rules: LogRules) -> None:
        self._rules = rules
        logging.getLogger().setLevel(rules.lowest)

    @property
    def precise(self) -> bool:
        """Whether times have fractions of seconds."""
        return self._formatter.form.precise

    @precise.setter
    def precise(self, precise: bool) -> None:
        self._formatter.form = attrs.evolve(self._formatter.form, precise=precise)

    @contextlib.contextmanager
    def writing(self, output: LogOutput, syslog: str = SYSLOG) -> Iterator[None]:
        """Log to `output` within the block.

        Args:
            syslog: socket of the system's log.

        Raises:
            LogOutputError: a file cannot be written, or there is no system log.
        """
        root = logging.getLogger()
        level = root.level
        with contextlib.ExitStack() as stack:
            for handler in _handlers(output, syslog, stack):
                handler.addFilter(lambda record: self._rules.applies(record))
                handler.setFormatter(self._formatter)
                root.addHandler(handler)
                stack.callback(root.removeHandler, handler)
                if isinstance(handler, logging.FileHandler):
                    self._files.append(handler)
            stack.callback(self._files.clear)
            stack.callback(root.setLevel, level)
            root.setLevel(self._rules.lowest)
            yield

    def reopen(self) -> int:
        """Open the files by their names again, since others may have been put in their places; returns their number.

        Raises:
            LogOutputError: some cannot be opened; the log goes on in the old ones there.
        """
        problems: list[str] = []
        for handler in self._files:
            try:
                stream = Path(handler.baseFilename).open("a", encoding="utf-8")  # noqa: SIM115 - closed by the handler
            except OSError as error:
                problems.append(f"cannot log to {handler.baseFilename}: {error.strerror or error}")
                continue
            old = handler.setStream(stream)
            if old is not None:
                old.close()
        if problems:
            raise LogOutputError("; ".join(problems))
        return len(self._files)


def _handlers(output: LogOutput, syslog: str, stack: contextlib.ExitStack) -> list[logging.Handler]:
    handlers: list[logging.Handler] = []
    if output.stderr:
        handlers.append(logging.StreamHandler(sys.stderr))
    if output.stdout:
        handlers.append(logging.StreamHandler(sys.stdout))
    for path in output.files:
        try:
            handlers.append(logging.FileHandler(Path(path), encoding="utf-8"))
        except OSError as error:
            raise LogOutputError(f"cannot log to {path}: {error.strerror or error}") from error
        stack.callback(handlers[-1].close)
    if output.syslog:
        handlers.append(_syslog_handler(output, syslog))
        stack.callback(handlers[-1].close)
    return handlers


def _syslog_handler(output: LogOutput, syslog: str) -> SysLogHandler:
    facility = SysLogHandler.facility_names.get(output.syslog_facility.lower().removeprefix("log_"))
    if facility is None:
        raise LogOutputError(f"there is no syslog facility {output.syslog_facility!r}")
    if not Path(syslog).exists():
        # The handler itself would try again with every message.
        raise LogOutputError(f"cannot log to syslog: there is no {syslog}")
    try:
        handler = _SysLogHandler(syslog, facility)
    except OSError as error:
        raise LogOutputError(f"cannot log to syslog: {error.strerror or error}") from error
    handler.ident = f"{output.syslog_name}: "
    return handler
