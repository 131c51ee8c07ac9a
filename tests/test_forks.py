"""Commands that are forks are processes as others: standard streams, an environment, exit codes and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from shell.terminals import Terminal, environment
from support.forks import ForkedCommand, script_of
from support.processes import Process, command, run

pytestmark = pytest.mark.slow


def merged(*words: str) -> ForkedCommand:
    found = script_of(words)
    assert found is not None
    return ForkedCommand(*found, os.environ, merged=True)


def test_output_errors_and_exit_codes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    words = [command("qpid-config"), "--no-such-option"]
    ours = run(words)
    theirs = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)
    assert merged(*words).communicate(None, 60) == (theirs.stderr, "")
    version = run([command("qmf-broker"), "--version"])
    assert (version.returncode, version.stdout.split()[0]) == (0, "qmf-broker")


def test_the_folder_and_the_environment_are_those_of_the_caller(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SHOWN_HERE", "yes")
    monkeypatch.chdir(tmp_path)
    process = Process(command("qmf-broker"), "--port", "0")
    try:
        process.wait_for("Listening on")
        seen = psutil.Process(process.popen.pid)
        assert seen.cwd() == str(tmp_path)
        assert seen.ppid() != os.getpid()
    finally:
        assert process.end() == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_in_order(number: signal.Signals) -> None:
    process = Process(command("qmf-broker"), "--port", "0")
    process.wait_for("Listening on")
    assert process.popen.poll() is None
    assert process.end(number) == 0
    assert process.popen.returncode == 0


def test_it_is_killed() -> None:
    process = Process(command("qmf-broker"), "--port", "0")
    process.wait_for("Listening on")
    assert process.end(signal.SIGKILL) == -signal.SIGKILL
    assert not psutil.pid_exists(process.popen.pid)


def test_waiting_has_a_limit() -> None:
    process = Process(command("qmf-broker"), "--port", "0")
    with pytest.raises(subprocess.TimeoutExpired):
        process.popen.wait(0)
    assert process.end(signal.SIGKILL) == -signal.SIGKILL


def test_a_terminal_is_that_of_the_command_and_ends_it(tmp_path: Path) -> None:
    with Terminal([], environment(tmp_path), columns=77, rows=22) as terminal:
        terminal.ready()
        seen = psutil.Process(terminal.child.process.pid)
        assert os.getsid(seen.pid) == seen.pid != os.getsid(0)
        assert seen.terminal() not in (None, psutil.Process().terminal())
    assert terminal.child.exitstatus is not None
    assert not psutil.pid_exists(seen.pid)


def test_a_module_is_run_with_its_warnings_as_errors() -> None:
    words = [sys.executable, "-W", "error", "-m", "qmf.broker", "--no-such-option"]
    ours = run(words)
    theirs = subprocess.run(words, capture_output=True, text=True, check=False)
    assert script_of(words) is not None
    assert (ours.returncode, ours.stdout, ours.stderr) == (theirs.returncode, theirs.stdout, theirs.stderr)


def test_other_programs_are_none_of_them() -> None:
    assert script_of(["/bin/sh", "-c", "true"]) is None
    assert script_of([sys.executable, "-c", "pass"]) is None
    assert script_of([sys.executable]) is None
