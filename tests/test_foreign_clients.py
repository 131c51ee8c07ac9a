"""The program that gets AMQP clients of others: what cannot be had is reported, and the command runs without it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from support.processes import run

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.slow
def test_a_client_that_cannot_be_had_is_reported(tmp_path: Path) -> None:
    environment = {**os.environ, "PATH": "/nonexistent", "QMF_FOREIGN_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    for name in ("JMS", "PROTON_CPP"):
        environment.pop(f"QMF_TEST_{name}", None)
    environment |= {"QMF_TEST_RHEA": "/named", "QMF_TEST_DUCKDB_DELTA": "/named"}
    environment |= {"QMF_TEST_KERBEROS": "/named", "QMF_TEST_MOSQUITTO": "/named", "QMF_TEST_PYTHON_MQTT": "/named"}
    environment |= {"QMF_TEST_WEBSOCKET_PAGE": "/named", "QMF_TEST_ARTEMIS_CLIENTS": "/named"}
    code = "import os; print(os.environ['QMF_TEST_JMS_MISSING'], os.environ['QMF_TEST_RHEA']); raise SystemExit(3)"
    done = run([sys.executable, "-m", "scripts.foreign", sys.executable, "-c", code], env=environment)
    assert done.returncode == 3
    reason = (
        "jms is not available: it needs the package default-jdk-headless: sudo apt-get install default-jdk-headless"
    )
    assert done.stdout == f"{reason} /named\n"
    assert done.stderr == (
        f"{reason}\nproton_cpp is not available: it needs the package g++: sudo apt-get install g++\n"
    )
