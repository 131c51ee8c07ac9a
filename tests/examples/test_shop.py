"""The shop of docs/agent.md: its own tests pass, its models are fresh, and it runs as its users run it."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes import Process, command, run, running
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.console import Session

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SHOP = EXAMPLES / "shop"


@pytest.fixture
def shop(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The command; the current directory is the one that it needs."""
    monkeypatch.chdir(EXAMPLES)
    return [sys.executable, "-m", "shop"]


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as broker:
        yield broker


def test_its_own_tests_pass() -> None:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST_")}
    done = run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(SHOP)], env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_its_models_are_fresh() -> None:
    done = run([command("qmf-codegen"), str(SHOP / "shop.xml"), "-o", str(SHOP / "models"), "--check"])
    assert done.returncode == 0, done.stdout + done.stderr


def test_it_runs_and_is_managed(shop: list[str], broker: EmbeddedBroker, tmp_path: Path) -> None:
    options = ["--pace", "100", "--interval", "0.2", "--state-dir", str(tmp_path), "--name", "test"]
    for start in ("the 1. time", "the 2. time"):
        process = Process(*shop, broker.url, *options)
        assert process.wait_for("is open") == f"example.org:shop:test is open, {start}"
        with Session() as session:
            session.addBroker(broker.url)
            tills = session.getObjects(_class="till", _package="org.example.shop")
            assert [(till.number, till.cashier) for till in tills] == [(1, "Ada"), (2, "Boris"), (3, "Carla")]
            wait_until(lambda: len(session.getObjects(_class="receipt")) > 5, "receipts")
            assert tills[0].open("Dan").text == "Ada sits at till 1"
            tills[0].update()
            assert tills[0].balance == tills[0].takings
        assert process.end(signal.SIGINT) == 0
        assert "Traceback" not in "".join(process.lines)


def test_without_a_directory_starts_are_not_counted(shop: list[str], broker: EmbeddedBroker) -> None:
    with running(*shop, broker.url, "--name", "test") as process:
        assert process.wait_for("is open") == "example.org:shop:test is open"


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--pace", "0", "'0' is not a number from 0.001 to 10000"),
        ("--pace", "-1", "'-1' is not a number from 0.001 to 10000"),
        ("--pace", "nan", "'nan' is not a number from 0.001 to 10000"),
        ("--tills", "0", "'0' is not a number from 1 to 99"),
        ("--tills", "100", "'100' is not a number from 1 to 99"),
    ],
)
def test_wrong_numbers(shop: list[str], option: str, value: str, message: str) -> None:
    done = run([*shop, f"{option}={value}"])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == f"shop: error: argument {option}: {message}"


def test_it_waits_for_its_broker(shop: list[str]) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = Process(*shop, f"amqp://127.0.0.1:{port}", "--name", "test")
    process.wait_for("is open")
    with EmbeddedBroker(port=port) as broker, Session() as session:
        session.addBroker(broker.url)
        wait_until(lambda: len(session.getObjects(_class="till", _package="org.example.shop")) == 3, "tills")
        assert process.end(signal.SIGINT) == 0
    assert "Traceback" not in "".join(process.lines)
