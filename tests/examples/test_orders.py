"""The worker of orders: what it prints of orders that are good, bad and broken, until a signal ends it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.messaging import Connection, Message

WORKER = Path(__file__).resolve().parents[2] / "examples" / "orders" / "worker.py"


@pytest.mark.slow
def test_orders_are_handled_until_a_signal(tmp_path: Path) -> None:
    output = tmp_path / "output"
    with EmbeddedBroker() as broker, output.open("w") as file:
        process = subprocess.Popen([sys.executable, str(WORKER), broker.url], stdout=file)
        try:
            with Connection.establish(broker.url, timeout=10) as connection:
                sender = connection.session().sender("orders; {create: always, node: {type: queue, durable: True}}")
                for text in ('{"item": "tea", "number": 3}', '{"item": "pot", "number": 0}', "{"):
                    sender.send(Message(text.encode(), content_type="application/json"))
            wait_until(lambda: len(output.read_text().splitlines()) == 3, timeout=30)
            process.terminate()
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait(30)
        with Connection.establish(broker.url, timeout=10) as connection:
            receiver = connection.session().receiver("orders.dead", capacity=2)
            dead = {receiver.fetch(timeout=10).content for _ in range(2)}
    lines = output.read_text().splitlines()
    assert sorted(lines[:3]) == [
        "3 of tea",
        "failed: 0 of pot; it went to the dead letters",
        "failed: content cannot be decoded as 'application/json': Expecting property name enclosed in double quotes: "
        "line 1 column 2 (char 1); it went to the dead letters",
    ]
    assert lines[3:] == ["ended"]
    assert dead == {b'{"item": "pot", "number": 0}', b"{"}
