"""The log of the daemon: its lines, and where they go."""

from __future__ import annotations

import logging
import re
import socket
from pathlib import Path

import pytest

from qmf.broker.daemon.log_options import log_output, log_writer
from qmf.broker.daemon.log_output import LineForm, LogOutput, LogOutputError, LogWriter
from qmf.broker.daemon.log_rules import LogRules
from qmf.broker.daemon.options import options_parser

log = logging.getLogger("qmf.broker.test")
#: Nothing but the message.
BARE = LineForm(time=False, category=False, level=False)


def written(tmp_path: Path, form: LineForm, rule: str = "notice+") -> str:
    path = tmp_path / "log"
    with LogWriter(LogRules.parse([rule]), form).writing(LogOutput(stderr=False, files=(str(path),))):
        log.info("too low")
        log.warning("hello %s", "you")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("form", "line"),
    [
        (LineForm(), r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d \[Broker\] warning hello you\n"),
        (LineForm(precise=True), r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{9} \[Broker\] warning hello you\n"),
        (BARE, r"hello you\n"),
        (LineForm(prefix="b1", time=False, thread=True), r"b1 \[Broker\] warning \[\d+\] hello you\n"),
        (LineForm(time=False, source=True, function=True), r".* test_log_output\.py:\d+: written: hello you\n"),
    ],
)
def test_lines(form: LineForm, line: str, tmp_path: Path) -> None:
    assert re.fullmatch(line, written(tmp_path, form))


def test_files_are_appended_to_and_the_root_logger_is_as_before(tmp_path: Path) -> None:
    before = (logging.getLogger().level, list(logging.getLogger().handlers))
    written(tmp_path, BARE)
    assert written(tmp_path, BARE, "info+") == "hello you\ntoo low\nhello you\n"
    assert (logging.getLogger().level, list(logging.getLogger().handlers)) == before


def test_streams(capsys: pytest.CaptureFixture[str]) -> None:
    writer = LogWriter(LogRules.parse(["notice+"]), BARE)
    with writer.writing(LogOutput(stdout=True)):
        log.error("both")
        writer.rules = LogRules.parse(["critical+"])
        log.error("not this one")
        writer.precise = True
        assert writer.precise
    assert capsys.readouterr() == ("both\n", "both\n")


def test_syslog(tmp_path: Path) -> None:
    path = tmp_path / "syslog"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as system:
        system.bind(str(path))
        system.settimeout(30)
        output = LogOutput(stderr=False, syslog=True, syslog_name="mq1", syslog_facility="LOG_LOCAL0")
        with LogWriter(LogRules.parse(["trace+"]), BARE).writing(output, str(path)):
            log.log(25, "note")
            log.error("bad")
        # Facility 16, priorities notice and err.
        assert system.recv(1000).rstrip(b"\0") == b"<133>mq1: note"
        assert system.recv(1000).rstrip(b"\0") == b"<131>mq1: bad"


@pytest.mark.parametrize(
    ("output", "reason"),
    [
        (LogOutput(files=("/no/such/folder/log",)), "cannot log to /no/such/folder/log: No such file"),
        (LogOutput(syslog=True, syslog_facility="LOG_NOWHERE"), "no syslog facility 'LOG_NOWHERE'"),
        (LogOutput(syslog=True), "cannot log to syslog: there is no"),
    ],
)
def test_places_that_are_not_there(output: LogOutput, reason: str, tmp_path: Path) -> None:
    with (
        pytest.raises(LogOutputError, match=reason),
        LogWriter(LogRules.parse(["trace+"]), BARE).writing(output, str(tmp_path / "none")),
    ):
        pass


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("", LogOutput()),
        ("--log-to-stderr no --log-to-file a --log-to-file b", LogOutput(stderr=False, files=("a", "b"))),
        ("--log-output stdout", LogOutput(stderr=False, stdout=True)),
        ("--log-output a --log-to-stderr yes", LogOutput(files=("a",))),
        ("--log-output syslog --syslog-name n", LogOutput(stderr=False, syslog=True, syslog_name="n")),
        ("--log-to-syslog yes --syslog-facility LOG_USER", LogOutput(syslog=True, syslog_facility="LOG_USER")),
        ("--daemon", LogOutput(stderr=False, syslog=True)),
        ("--daemon --log-to-file a --log-to-stderr yes", LogOutput(stderr=False, files=("a",))),
        ("--daemon --log-to-syslog no", LogOutput(stderr=False)),
    ],
)
def test_options(words: str, wanted: LogOutput) -> None:
    assert log_output(options_parser().parse_args(words.split()), syslog="/") == wanted


def test_a_daemon_without_syslog(tmp_path: Path) -> None:
    options = options_parser().parse_args(["--daemon"])
    assert log_output(options, syslog=str(tmp_path / "none")) == LogOutput(stderr=False)


def test_options_of_rules() -> None:
    def rules(*words: str) -> str:
        return str(log_writer(options_parser().parse_args(words)).rules)

    assert rules() == "notice+"
    assert rules("--verbose") == "debug+"
    assert rules("--trace", "--log-disable", "trace:Network") == "trace+,!trace:Network"
    assert rules("--log-enable", "info+", "--log-enable", "debug:Broker") == "info+,debug:Broker"
