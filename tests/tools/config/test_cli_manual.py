"""The sessions with `qpid-config` in the manual of qpidd; `test_cheat_sheets` has its cheat sheets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest
from support.managed_brokers import NEVER
from support.waiting import WAIT_LIMIT

from qmf.broker import EmbeddedBroker
from qmf.tools.config.cli import main

Config: TypeAlias = Callable[..., list[str]]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(management=NEVER, data_dir=tmp_path_factory.mktemp("data")) as found:
        yield found


@pytest.fixture
def config(broker: EmbeddedBroker, capsys: pytest.CaptureFixture[str]) -> Config:
    """Runs a command line of the manual; its output."""

    def call(line: str) -> list[str]:
        address = f"guest/guest@127.0.0.1:{broker.port}"
        assert main([*line.split(), "-a", address, "--timeout", str(WAIT_LIMIT)]) == 0
        return capsys.readouterr().out.splitlines()

    return call


def test_chapter_1_1_the_summary_and_the_lists(config: Config) -> None:
    for name in ("pub_start", "pub_done", "sub_ready", "sub_done"):
        config(f"add queue {name}")
    lines = [line.strip() for line in config("")]
    assert lines[0].startswith("Total Exchanges: ")
    assert "headers: 1" in lines
    assert any(line.startswith("Total Queues: ") for line in lines)
    assert config("queues pub_") == ["Queue Name  Attributes", "=" * 35, "pub_start", "pub_done"]
    config("add queue perftest0 --durable")
    assert config("queues perftest0")[2:] == ["perftest0   --durable"]
    assert config("")[-2].split() == ["durable:", "1"]
    shown = config("-b exchanges")
    start = shown.index("Exchange '' (direct)")
    assert {f"    bind [{name}] => {name}" for name in ("pub_start", "pub_done", "sub_ready")} <= set(shown[start:])
    assert [line for line in shown if line.startswith("Exchange 'amq.")] == [
        "Exchange 'amq.topic' (topic)",
        "Exchange 'amq.direct' (direct)",
        "Exchange 'amq.fanout' (fanout)",
        "Exchange 'amq.match' (headers)",
    ]
    config("bind amq.direct pub_start rkey")
    assert "    bind [rkey] => pub_start" in config("exchanges amq.direct -b")
    config("unbind amq.direct pub_start rkey")
    for name in ("pub_start", "pub_done", "sub_ready", "sub_done", "perftest0"):
        config(f"del queue {name}")
    assert not any("pub_start" in line for line in config("-b exchanges"))


def test_chapter_7_events_of_queues_are_asked_for(config: Config) -> None:
    config("add queue queue-a --generate-queue-events 2")
    config("add queue queue-b --generate-queue-events 1")
    assert [line.split() for line in config("queues queue-")[2:]] == [
        ["queue-a", "--generate-queue-events=2"],
        ["queue-b", "--generate-queue-events=1"],
    ]
