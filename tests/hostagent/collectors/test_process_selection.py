"""Which processes are shown."""

from __future__ import annotations

import os
import re

import psutil
import pytest
from hostagent.fakes import FakeProcess, FakePsutil

from qmf.hostagent.collectors.process_selection import ProcessSelector
from qmf.hostagent.settings import ProcessSelection

NONE = ProcessSelection.parse("none")


def shown(selector: ProcessSelector, ps: FakePsutil) -> list[int]:
    return sorted(process.handle.pid for process in selector.read(ps))


@pytest.mark.parametrize(
    ("selection", "expected"), [("all", [1, 2, 3, 4]), ("top:2", [2, 4]), ("top:9", [1, 2, 4]), ("none", [])]
)
def test_selections(selection: str, expected: list[int]) -> None:
    # Number 3 is a part of the kernel: it occupies nothing.
    ps = FakePsutil(processes=[FakeProcess(number, rss=rss) for number, rss in ((1, 10), (2, 40), (3, 0), (4, 30))])
    assert shown(ProcessSelector(ProcessSelection.parse(selection)), ps) == expected


def test_our_own_process_is_always_shown() -> None:
    ps = FakePsutil(processes=[FakeProcess(os.getpid()), FakeProcess(os.getpid() + 1)])
    assert shown(ProcessSelector(NONE), ps) == [os.getpid()]


def test_patterns_find_names_and_command_lines() -> None:
    ps = FakePsutil(
        processes=[
            FakeProcess(1, "nginx"),
            FakeProcess(2, "python", ["-m", "nginx_exporter"]),
            FakeProcess(3, "bash"),
            FakeProcess(4, "nginx", state=psutil.STATUS_ZOMBIE),
        ]
    )
    processes = ProcessSelector(NONE, (re.compile("^nginx$"), re.compile("-m nginx"))).read(ps)
    assert [(process.handle.pid, process.watched) for process in processes] == [(1, True), (2, True)]


def test_a_command_line_that_may_not_be_read_leaves_the_name() -> None:
    ps = FakePsutil(processes=[FakeProcess(1, "nginx", denied=frozenset({"cmdline"}))])
    assert shown(ProcessSelector(NONE, (re.compile("nginx"),)), ps) == [1]


def test_patterns_on_our_command_line_do_not_find_us() -> None:
    ps = FakePsutil(processes=[FakeProcess(os.getpid(), "qmf-host-agent", ["--process", "nginx"])])
    (process,) = ProcessSelector(NONE, (re.compile("nginx"),)).read(ps)
    assert process.watched is False


@pytest.mark.parametrize("selection", ["all", "top:5"])
def test_processes_that_end_meanwhile_are_left_out(selection: str) -> None:
    ps = FakePsutil(processes=[FakeProcess(1, vanishes=True), FakeProcess(2)])
    assert shown(ProcessSelector(ProcessSelection.parse(selection), (re.compile("x"),)), ps) == [2]


def test_processes_of_nearly_the_same_size_do_not_take_turns() -> None:
    first, second = FakeProcess(1, rss=1000), FakeProcess(2, rss=990)
    ps = FakePsutil(processes=[first, second])
    selector = ProcessSelector(ProcessSelection.parse("top:1"))
    assert shown(selector, ps) == [1]
    second.rss = 1050
    assert shown(selector, ps) == [1]
    second.rss = 1200
    assert shown(selector, ps) == [2]


def test_command_lines_are_read_only_where_asked_for() -> None:
    ps = FakePsutil(processes=[FakeProcess(1, "mysql", ["--password=secret"])])
    (process,) = ProcessSelector(ProcessSelection.parse("all")).read(ps)
    assert "cmdline" not in process.fields
    (process,) = ProcessSelector(ProcessSelection.parse("all"), command_lines=True).read(ps)
    assert process.fields["cmdline"] == ["mysql", "--password=secret"]
