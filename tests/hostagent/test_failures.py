"""ReadingFailures are logged once and counted always."""

from __future__ import annotations

import logging

import pytest

from qmf.hostagent.failures import ReadingFailures


def test_a_failure_that_stays_is_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    failures = ReadingFailures()
    with caplog.at_level(logging.WARNING, "qmf.hostagent"):
        for _ in range(3):
            failures.on_failure("the usage of /home", PermissionError("denied"))
    assert [record.getMessage() for record in caplog.records] == ["Cannot read the usage of /home: denied"]
    assert failures.count == 3


def test_a_failure_that_comes_back_is_news(caplog: pytest.LogCaptureFixture) -> None:
    failures = ReadingFailures()
    with caplog.at_level(logging.WARNING, "qmf.hostagent"):
        failures.on_failure("the disks", OSError("gone"))
        failures.on_success("the disks")
        failures.on_failure("the disks", OSError("gone"))
    assert len(caplog.records) == 2


def test_an_error_without_words_is_named(caplog: pytest.LogCaptureFixture) -> None:
    ReadingFailures().on_failure("the disks", NotImplementedError())
    assert caplog.records[0].getMessage() == "Cannot read the disks: NotImplementedError"
