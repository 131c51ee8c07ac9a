"""What agents, consoles and tools create on a broker for themselves; what a broker does not have."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.managed_brokers import NEVER

from qmf.broker import EmbeddedBroker
from qmf.client import Broker, BrokerAgent
from qmf.tools.config.cli import main
from qmf.tools.config.completion import candidates


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(management=NEVER, queues=["orders"]) as found:
        yield found


def output(broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main([*words, "-a", broker.url, "--timeout", "30"]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        ["queues"],
        ["queues", "-r"],
        ["exchanges", "-r"],
        ["list", "queue"],
        ["list", "binding"],
        ["list", "subscription"],
        ["list", "connection"],
        ["queues", "--json"],
        ["exchanges", "-r", "--json"],
        ["list", "queue", "--json"],
    ],
)
def test_own_things_are_left_out(broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    shown = output(broker, capsys, *words)
    everything = output(broker, capsys, *words, "--all")
    mark = "qmf.management" if "connection" in words else "qmf-in-"
    if "connection" in words:
        everything = output(broker, capsys, *words, "--all", "--show-property", "remoteProperties")
    assert mark not in shown
    assert mark in everything


def test_they_are_not_counted_and_not_completed(broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert json.loads(output(broker, capsys, "--json"))["queues"] == {"durable": 0, "non-durable": 1}
    assert json.loads(output(broker, capsys, "--json", "--all"))["queues"]["non-durable"] > 1
    assert "   Total Queues: 1" in output(broker, capsys).splitlines()
    assert candidates(["-a", broker.url, "queues", ""]) == ["orders"]
    assert len(candidates(["-a", broker.url, "--all", "queues", ""])) > 1


def test_one_that_is_named_is_shown(broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    with BrokerAgent.connect(broker.url, timeout=30) as agent:
        own = next(item.name for item in agent.getAllQueues() if item.is_own)
        assert own in output(broker, capsys, "queues", own)


def test_an_unknown_class_is_an_error(broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "bogus", "-a", broker.url]) == 1
    assert main(["list", "excange", "--json", "-a", broker.url]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["Failed: no class 'bogus'", "Failed: no class 'excange'; did you mean exchange?"]
    assert output(broker, capsys, "list", "link") == "Objects of type 'link'\n"


def test_durable_needs_a_store(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    warning = "Warning: --durable: this broker has no store, so nothing outlives its restart\n"
    # A broker of its own: that of the other tests has the same queues throughout.
    with EmbeddedBroker(management=NEVER) as bare:
        for words in (["queue", "kept"], ["exchange", "topic", "prices"], ["queue", "other", "--dry-run"]):
            assert main(["add", *words, "--durable", "-a", bare.url]) == 0
            assert capsys.readouterr().err == warning
    with EmbeddedBroker(management=NEVER, data_dir=tmp_path) as stored:
        assert main(["add", "queue", "kept", "--durable", "-a", stored.url]) == 0
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("object_id", [{"_agent_name": "apache.org:qpidd:1"}, {}])
def test_the_store_of_a_qpidd_is_an_object_of_its_own(
    broker: EmbeddedBroker,
    object_id: dict[str, object],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def seen(found: BrokerAgent, kind: str) -> list[dict[str, object]]:
        del found
        return stores if kind == "store" else []

    qpidd = {"_object_id": object_id, "_values": {"dataDir": "/var/lib/qpidd"}}
    monkeypatch.setattr(BrokerAgent, "list", seen)
    monkeypatch.setattr(BrokerAgent, "getBroker", lambda found: Broker(found, qpidd))
    stores: list[dict[str, object]] = []
    assert main(["add", "queue", "q", "--durable", "--dry-run", "-a", broker.url]) == 0
    assert "no store" in capsys.readouterr().err
    stores.append({"storeDir": "/var/lib/qpidd"})
    assert main(["add", "queue", "q", "--durable", "--dry-run", "-a", broker.url]) == 0
    assert capsys.readouterr().err == ""
