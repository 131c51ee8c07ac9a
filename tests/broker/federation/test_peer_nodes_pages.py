"""The commands of the pages about brokers of others, with the brokers of the contract tests."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from docs.page import ROOT, blocks, lines
from support.brokers import NAMES, URLS
from support.managed_brokers import unique
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.client import BrokerAgent
from qmf.messaging import Connection, Message
from qmf.tools.config.cli import main as config
from qmf.tools.route.cli import main as route

pytestmark = pytest.mark.slow

#: The login that brokers of tests have, if they have users.
LOGINS = {"username=links": "username=guest", "password=secret": "password=guest"}


def commands_of(page: str, names: dict[str, str]) -> Iterator[list[str]]:
    """Words of the commands that a page has for its broker, with other names and places."""
    (block,) = [item for item in blocks(ROOT / "docs" / f"federation-{page}.md") if item.language == "sh"]
    for command in lines(block, None):
        text = command.text
        for name, other in names.items():
            text = text.replace(name, other)
        yield [LOGINS.get(word, word) for word in shlex.split(text)]


@pytest.mark.parametrize("name", NAMES)
def test_the_commands_of_the_page(name: str, tmp_path: Path) -> None:
    if name not in URLS:
        pytest.skip("docs/federation.md has its commands")
    peer, queue, news = URLS[name], unique("orders"), unique("news")
    place = urlsplit(peer).netloc
    with EmbeddedBroker(queues=[queue], data_dir=tmp_path / "here", management=10) as here:
        topic = news if name == "artemis" else "amq.topic"
        hosts = ("artemis.example:61616", "rabbit.example", "qpidd.example")
        names = dict.fromkeys(hosts, place) | {"=orders": f"={queue}", "-out": f"-out-{queue}", "-in": f"-in-{queue}"}
        names |= {"news.#": f"{news}.#", "source=news": f"source={news}", "localhost": urlsplit(here.url).netloc}
        with Connection(peer) as there, Connection(here.url) as own:
            create = "; {create: always}"
            taken = there.session().receiver(f"{queue}{create}")
            received = own.session().receiver("amq.topic/#")
            for tool, *words in commands_of(name, names):
                found = config([*words, "-a", here.url]) if tool == "qpid-config" else route(words)
                assert not found, words
            agent = BrokerAgent(own)

            def states() -> set[str]:
                return {str(item.state) for item in agent.getAllLinks()}

            wait_until(lambda: states() == {"Operational"}, "all links are up")
            own.session().sender(queue).send(Message("two of those", durable=True))
            assert taken.fetch(timeout=30).content == "two of those"
            kind = "; {node: {type: topic}}" if name == "artemis" else ""
            there.session().sender(f"{topic}/{news}.weather{kind}").send(Message("fog"))
            assert received.fetch(timeout=30).content == "fog"
            agent.delete("outgoing", f"orders-out-{queue}")
            agent.delete("incoming", f"news-in-{queue}")
