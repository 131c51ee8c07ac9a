"""Completion of `qpid-config`."""

from __future__ import annotations

import shutil
import subprocess

import pytest
from support.managed_brokers import unique

from qmf.client import BrokerAgent
from qmf.tools.config.cli import main
from qmf.tools.config.completion import candidates, completion_script


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ([], ["exchanges", "queues", "add", "del", "bind", "unbind", "reload-acl", "list", "log", "shutdown"]),
        (["b"], ["bind"]),
        (["--dry-run", "un"], ["unbind"]),
        (["add", "q"], ["queue"]),
        (["add", "exchange", ""], ["direct", "fanout", "topic", "headers", "xml", "mqtt"]),
        (["add", "queue", "orders", "--limit-policy", "r"], ["reject", "ring", "ring-strict"]),
        (["--completion", ""], ["bash", "zsh", "fish"]),
        (["add", "queue", "orders", "--max-queue-c"], ["--max-queue-count"]),
        (["add", "queue", "orders", "--max-queue-count", ""], []),
        (["bind", "e", "q", "key", "a"], ["all", "any"]),
        (["--no-such-option", ""], []),
        (["queues", "-a", "127.0.0.1:1", ""], []),
    ],
)
def test_candidates(words: list[str], wanted: list[str]) -> None:
    assert candidates(words) == wanted


def test_names_come_from_the_broker(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    name = unique("zebra")
    with BrokerAgent.connect(url, timeout=30) as broker:
        broker.addQueue(name)
        broker.bind("amq.topic", name, "eur.#")
        for words in (["queues", "zebra"], ["del", "queue", "zebra"], ["bind", "amq.topic", "zebra"]):
            assert main(["--complete", "-a", url, *words]) == 0
            assert name in capsys.readouterr().out.splitlines()
        assert "amq.topic" in candidates(["-a", url, "bind", "amq"])
        assert candidates(["-a", url, "unbind", "amq.topic", name, ""]) == ["eur.#"]
        broker.delQueue(name)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--completion", shell]) == 0
    script = capsys.readouterr().out
    assert script == completion_script(shell) + "\n"
    assert "qpid-config --complete" in script
    if (program := shutil.which(shell)) is not None:
        checked = subprocess.run([program, "-n"], input=script, capture_output=True, text=True, timeout=60, check=False)
        assert (checked.returncode, checked.stderr) == (0, "")
