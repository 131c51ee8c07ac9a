"""The programs that run the contract tests: results by broker, and brokers that cannot be had."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.processes import run

from scripts.contract import SUITES, outcomes

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("path", [path for paths in SUITES.values() for path in paths])
def test_the_suites_exist(path: str) -> None:
    assert list((ROOT / path).glob("test_*.py")) if (ROOT / path).is_dir() else (ROOT / path).is_file()


def test_outcomes_by_broker(tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(
        """<testsuites><testsuite>
        <testcase name="test_a[memory]"/>
        <testcase name="test_a[broker over TLS]"/>
        <testcase name="test_a[embedded, asyncio]"/>
        <testcase name="test_b[rabbitmq-text-1]"><failure/></testcase>
        <testcase name="test_b[1-artemis]"><skipped/></testcase>
        <testcase name="test_c"><error/></testcase>
        </testsuite></testsuites>""",
        encoding="utf-8",
    )
    assert list(outcomes(report)) == [
        ("embedded", "passed"),
        ("embedded", "passed"),
        ("rabbitmq", "failed"),
        ("artemis", "skipped"),
        ("embedded", "failed"),
    ]


@pytest.mark.slow
def test_a_broker_that_cannot_be_had_is_reported(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": "/nonexistent", "QMF_BROKERS_CACHE": str(tmp_path)}
    environment.pop("QMF_TEST_ARTEMIS", None)
    environment["QMF_TEST_RABBITMQ"] = "amqp://named"
    code = (
        "import os; print(os.environ['QMF_TEST_ARTEMIS_MISSING'], os.environ['QMF_TEST_RABBITMQ']); raise SystemExit(3)"
    )
    environment["PYTHONPATH"] = str(ROOT)
    done = run([sys.executable, "-m", "scripts.brokers", sys.executable, "-c", code], env=environment)
    assert done.returncode == 3
    assert done.stdout == "mvn and java are needed to install it amqp://named\n"
    assert done.stderr == "artemis is not available: mvn and java are needed to install it\n"
