"""The Internet subscription of the AMQP illustrations: two organisations, each with a broker in its LAN and its DMZ.

Connections begin where the trust is higher: the provider's LAN pushes into its DMZ; the client's DMZ pulls from there,
by a consumer that the provider has named and permitted; the client's LAN pulls from its DMZ.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import attrs
import pytest
from broker.relay.lives import Life
from support.waiting import wait_until

from qmf.client import BrokerAgent
from qmf.errors import RemoteError
from qmf.messaging import Connection, Message
from qmf.messaging.exceptions import MessagingError

pytestmark = pytest.mark.slow

#: The provider's DMZ: its own LAN may publish, and the client's broker may take from one queue, and nothing else.
RULES = """\
acl allow admin@QPID all all
acl allow partner@QPID access queue name=prices-for-client
acl allow partner@QPID access exchange name=prices-for-client
acl allow partner@QPID consume queue name=prices-for-client
acl allow partner@QPID create connection host=all
acl deny all all
"""
USERS = {"admin": "1", "partner": "2", "stranger": "3"}
ADMIN: dict[str, Any] = {"username": "admin", "password": "1"}


@attrs.frozen
class Sites:
    """The brokers, by their numbers in the picture: 2, 1, 4 and 5."""

    provider: Life
    provider_dmz: Life
    client_dmz: Life
    client: Life


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sites]:
    folder = tmp_path_factory.mktemp("sites")
    users, rules = folder / "users", folder / "rules.acl"
    users.write_text("".join(f"{name}:{password}\n" for name, password in USERS.items()), encoding="utf-8")
    users.chmod(0o600)
    rules.write_text(RULES, encoding="utf-8")
    guarded = ("--users", str(users), "--acl-file", str(rules))
    with ExitStack() as stack:
        lives = [
            stack.enter_context(Life(folder / name, *options))
            for name, options in (("2", ()), ("1", guarded), ("4", ()), ("5", ()))
        ]
        yield Sites(*lives)


def subscribe(sites: Sites) -> None:
    """Make the nodes and the links of the picture."""
    sites.provider_dmz.create("queue", "prices-for-client", login=ADMIN)
    sites.provider.create("domain", "dmz", **ADMIN, url=sites.provider_dmz.url)
    pushed: dict[str, Any] = {"domain": "dmz", "source": "amq.topic", "key": "price.#", "target": "prices-for-client"}
    sites.provider.create("outgoing", "prices-out", **pushed)
    sites.client_dmz.create("queue", "prices")
    sites.client_dmz.create("domain", "provider", url=sites.provider_dmz.url, username="partner", password="2")
    pulled: dict[str, Any] = {"domain": "provider", "source": "prices-for-client", "target": "prices"}
    sites.client_dmz.create("incoming", "prices-in", **pulled)
    sites.client.create("domain", "dmz", url=sites.client_dmz.url)
    sites.client.create("incoming", "prices-in", domain="dmz", source="prices", target="amq.topic")


def test_a_subscription_passes_two_dmzs_and_outlasts_a_kill_of_each_broker(sites: Sites) -> None:
    subscribe(sites)
    with Connection(sites.client.url) as connection:  # 6: the subscriber
        receiver = connection.session().receiver("amq.topic/price.#")
        for published, victim in enumerate((None, sites.provider_dmz, sites.client_dmz)):
            if victim is not None:
                victim.kill()
            with Connection(sites.provider.url) as there:  # 3: the publisher
                there.session().sender("amq.topic").send(Message(published, subject="price.oil", durable=True))
            if victim is not None:
                victim.start()
            assert receiver.fetch(timeout=30).content == published  # nothing is lost, and nothing comes again


@pytest.mark.parametrize(
    ("source", "login", "state", "reason"),
    [
        ("prices-for-client", {"username": "stranger", "password": "3"}, "Waiting", "stranger"),
        ("other", {"username": "partner", "password": "2"}, "Waiting", "may not access"),
        ("prices-for-client", {"username": "partner", "password": "wrong"}, "Waiting", "partner"),
    ],
    ids=["another user", "another queue", "another password"],
)
def test_nobody_else_subscribes(
    sites: Sites, source: str, login: dict[str, str], state: str, reason: str, request: pytest.FixtureRequest
) -> None:
    name = request.node.callspec.id.replace(" ", "-")
    with Connection(sites.client_dmz.url) as connection:
        agent = BrokerAgent(connection)
        agent.create("queue", name)
        agent.create("domain", name, {"url": sites.provider_dmz.url, **login})
        agent.create("incoming", name, {"domain": name, "source": source, "target": name})

        def link() -> dict[str, object]:
            return next(item for item in agent.list("link") if item["name"] == name)

        wait_until(lambda: link()["lastError"], "the link says why it is not up")
        found = link()
        assert (found["state"], reason in str(found["lastError"])) == (state, True), found["lastError"]
        agent.delete("incoming", name)


def test_the_partner_changes_nothing_at_the_provider(sites: Sites) -> None:
    with (
        Connection.establish(sites.provider_dmz.url, username="partner", password="2") as connection,
        pytest.raises((MessagingError, RemoteError), match="may not"),
    ):
        BrokerAgent(connection).create("queue", "mine")
