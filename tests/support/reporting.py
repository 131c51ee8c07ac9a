"""What a process that runs tests reports of them to the one that shows results (pytest-xdist)."""

from __future__ import annotations

import pytest
from _pytest.runner import runtestprotocol

#: Seconds from which pytest lists the set-up or the end of a test among the slowest (`--durations`).
_LISTED = 0.005


def wanted(report: pytest.TestReport) -> bool:
    """Whether there is anything to see: in a set-up or an end that passed at once, there is not."""
    return report.when == "call" or not report.passed or bool(report.sections) or report.duration >= _LISTED


def run_and_report(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Run a test as pytest does, without reports that nobody wants: to send all three took half of the test's cost."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for report in runtestprotocol(item, log=False, nextitem=nextitem):
        if wanted(report):
            if report.passed:  # nor does anybody look at the names of its modules and marks
                report.keywords = {}
            item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
