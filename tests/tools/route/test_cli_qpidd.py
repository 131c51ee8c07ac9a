"""Routes between a broker of ours and a qpidd, both processes: asked of ours, which needs no AMQP 0-10 for them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.managed_brokers import unique
from support.waiting import wait_until
from tools.route.broker_processes import OURS, QPIDD, QPIDD_COMMAND, start_brokers

from qmf.client import BrokerAgent
from qmf.messaging import Connection, Message
from qmf.tools.route.cli import main

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not QPIDD_COMMAND, reason="QMF_TEST_QPIDD_COMMAND starts no qpidd"),
]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Ours, and a qpidd."""
    with ExitStack() as stack:
        yield start_brokers([OURS, QPIDD], tmp_path_factory.mktemp("brokers"), stack)


def transfer(source: str, address: str, target: str, queue: str) -> None:
    """A message that is sent to one broker arrives at the other."""
    name, _, subject = address.partition("/")
    with Connection.establish(source, timeout=30) as there, Connection.establish(target, timeout=30) as here:
        there.session().sender(name).send(Message(address, subject=subject), timeout=30)
        session = here.session()
        assert session.receiver(queue).fetch(30).content == address
        session.acknowledge()


@pytest.mark.parametrize("kind", ["static", "dynamic", "queue", "push", "push queue"])
def test_a_route_by_ours(places: list[str], kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    ours, theirs = places
    exchange, queue, public = unique("x"), unique("q"), unique("public")
    push = kind.startswith("push")
    source, target = (ours, theirs) if push else (theirs, ours)
    with BrokerAgent.connect(source, timeout=30) as there, BrokerAgent.connect(target, timeout=30) as here:
        for agent in (here, there):
            agent.addExchange("topic", exchange)
        there.addQueue(public)
        here.addQueue(queue)
        here.bind(exchange, queue, "k.#")
        words = {"static": ["route", "add"], "dynamic": ["dynamic", "add"], "queue": ["queue", "add"]}
        words |= {"push": words["static"], "push queue": words["queue"]}
        ends = {"static": [exchange, "k.#"], "dynamic": [exchange], "queue": [exchange, public]}
        ends |= {"push": ends["static"], "push queue": ends["queue"]}
        option = ["-s"] if push else []
        assert main([*option, *words[kind], target, source, *ends[kind], "--timeout", "30"]) == 0
        if kind.endswith("queue"):
            here.bind(exchange, queue, "#")  # what comes from a queue has the subject that it had
            transfer(source, f"{public}/k.1", target, queue)
        else:
            wait_until(
                lambda: any(
                    b.bindingKey == "k.#" and not b.queueRef.endswith(queue)
                    for b in there.getAllBindings()
                    if exchange in str(b.exchangeRef)
                ),
                "the route is bound at its source",
            )
            transfer(source, f"{exchange}/k.1", target, queue)
        assert main(["route", "map", ours]) == 0
        assert f"    {theirs}... Ok" in capsys.readouterr().out.splitlines()
        assert main([*option, words[kind][0], "del", target, source, *ends[kind], "-e"]) == 0


def test_a_qpidd_that_is_asked_for_a_link_to_ours(places: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It opens a connection of AMQP 0-10, which ours does not have: the tool shows how it fares."""
    ours, theirs = places
    assert main(["-q", "link", "add", theirs, ours]) == 0

    def row() -> str:
        assert main(["link", "list", theirs]) == 0
        return next((line for line in capsys.readouterr().out.splitlines() if ours.rpartition(":")[2] in line), "")

    wait_until(lambda: "Waiting" in row() or "Failed" in row(), "qpidd has tried")
    assert "Operational" not in row()
    assert main(["link", "del", theirs, ours]) == 0
