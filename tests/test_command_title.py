"""Passwords among the arguments of commands."""

from __future__ import annotations

import subprocess
import sys

import pytest

from qmf._command_title import mask_passwords


@pytest.mark.parametrize(
    ("argument", "shown"),
    [
        ("bob/secret@host:5672", "bob/***@host:5672"),
        ("amqps://bob:se/c:ret@host", "amqps://bob:***@host"),
        ("--broker=bob/secret@host", "--broker=bob/***@host"),
        ("orders@office.example", "orders@office.example"),
        ("host:5672", "host:5672"),
        ("amq.topic/#.news; {create: always}", "amq.topic/#.news; {create: always}"),
    ],
)
def test_passwords_of_addresses_are_masked(argument: str, shown: str) -> None:
    assert mask_passwords([argument]) == [shown]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at a process through /proc")
def test_other_processes_do_not_see_them() -> None:
    pytest.importorskip("setproctitle")
    program = (
        "from qmf._command_title import hide_passwords; import sys; hide_passwords(); "
        "print(open('/proc/self/cmdline').read()); print(sys.argv[1])"
    )
    run = [sys.executable, "-c", program, "bob/secret@host"]
    title, argument, *_ = subprocess.run(run, capture_output=True, text=True, check=True).stdout.splitlines()
    assert "secret" not in title
    assert "bob/***@host" in title
    assert argument == "bob/secret@host"
