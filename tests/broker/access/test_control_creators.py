"""Links and relays act with the rights of their creator, those of the groups in its access token included."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.access.test_control import control
from broker.federation.federated import OUT, FederatedBroker, send
from broker.relay.relaying import RelayingBroker
from support.waiting import until

from qmf.broker.access.control import FileAccessControl
from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import BROKER, Principal
from qmf.broker.relay.options import RelayOptions

RULES = """acl allow movers create link
acl allow movers create queue
acl allow movers access queue
acl allow movers access exchange
acl allow movers consume queue
acl allow movers publish exchange
acl allow anonymous@QPID all
acl deny all all
"""
#: By their tokens, bob is in a group, and eve is in none.
BOB = Principal("bob", "127.0.0.1:5", "AMQP 1.0", groups=frozenset({"movers", "other"}))
EVE = Principal("eve", "127.0.0.1:6", "AMQP 1.0")


def brokers_of(access: FileAccessControl, folder: Path) -> RelayingBroker:
    return RelayingBroker(port=0, data_dir=folder, access=access, relay=RelayOptions(enabled=True))


async def test_groups_of_a_creator_after_a_restart(tmp_path: Path) -> None:
    access = control(tmp_path, RULES)
    durable = read_node_declaration(("queue",), {"durable": True})
    async with FederatedBroker(port=0, queues=["there"]) as there:
        async with brokers_of(access, tmp_path / "data") as here:
            for name in ("in", "out", "far"):
                here.operations.create(BROKER, name, durable)
            here.domain(there.url, durable=True)
            moving = {"source": "in", "target": "out", "durable": True}
            for_peer = {"domain": "peer", "source": "far", "target": "there", "durable": True}
            with pytest.raises(OperationRefused, match="user 'eve' may not create link"):
                here.operations.forwarding.create(EVE, "queuelink", "moves", moving)
            here.operations.forwarding.create(BOB, "queuelink", "moves", moving)
            here.operations.forwarding.create(BOB, OUT.value, "link", for_peer)
            here.operations.forwarding.create(BOB, "relay", "office.example", {"domain": "peer", "durable": True})
            await here.state(PeerLinkState.OPERATIONAL)
        async with brokers_of(control(tmp_path, RULES), tmp_path / "data") as here:
            await here.state(PeerLinkState.OPERATIONAL)
            await send(here, "far", "x")
            await until(lambda: there.depth("there") == 1, "the link forwards")
            await send(here, "in", "y")
            await until(lambda: here.depth("out") == 1, "the link moves")
            assert here.found_relay("office.example").state_name != "Failed", here.found_relay("office.example").reason
        async with brokers_of(control(tmp_path, RULES.replace("movers", "others")), tmp_path / "data") as here:
            assert here.operations.forwarding.queue_links is not None
            (link,) = here.operations.forwarding.queue_links
            assert link.state_name == "Failed"
            assert "user 'bob' may not" in link.reason
            assert "user 'bob' may not" in here.found_relay("office.example").reason


async def test_a_link_between_queues_is_no_way_to_learn_what_there_is(tmp_path: Path) -> None:
    access = control(
        tmp_path, "acl allow bob@QPID create link\nacl allow bob@QPID access queue name=x*\nacl deny all all\n"
    )
    async with RelayingBroker(port=0, access=access, queues=["secret", "x", "out"]) as here:
        for source in ("secret", "nowhere"):
            with pytest.raises(
                OperationRefused, match=f"user 'bob' may not access queue '{source}': the ACL denies it"
            ):
                here.operations.forwarding.create(BOB, "queuelink", "link", {"source": source, "target": "out"})
        for source in ("x", "x-nowhere"):
            with pytest.raises(
                OperationRefused, match=f"user 'bob' may not consume queue '{source}': the ACL denies it"
            ):
                here.operations.forwarding.create(BOB, "queuelink", "link", {"source": source, "target": "out"})
        with pytest.raises(ForwardingError, match="no queue 'nowhere'"):
            here.operations.forwarding.create(BROKER, "queuelink", "link", {"source": "nowhere", "target": "out"})
