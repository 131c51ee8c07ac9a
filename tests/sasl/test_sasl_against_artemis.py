"""Our client logs in to a real Artemis by SCRAM, where one was installed for the tests of brokers."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from qmf.bus import AmqpBus
from qmf.errors import AuthenticationError
from scripts.brokers import ARTEMIS_VERSION, CACHE, create_artemis, free_port, running, wait_for_amqp

_LOGIN = """
scram { org.apache.activemq.artemis.spi.core.security.jaas.SCRAMPropertiesLoginModule required
  org.apache.activemq.jaas.properties.user="artemis-users.properties"
  org.apache.activemq.jaas.properties.role="artemis-roles.properties"; };
activemq { org.apache.activemq.artemis.spi.core.security.jaas.SCRAMLoginModule required; };
"""


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """An Artemis that offers SCRAM alone, with the user bob."""
    if not os.environ.get("QMF_TEST_ARTEMIS") or not (CACHE / f"apache-artemis-{ARTEMIS_VERSION}").exists():
        pytest.skip("QMF_TEST_ARTEMIS names no Artemis, or the distribution is not installed")
    folder: Path = tmp_path_factory.mktemp("artemis")
    port = free_port()
    command = create_artemis(folder, port, "--disable-persistence")
    etc = folder / "broker" / "etc"
    text = (etc / "broker.xml").read_text()
    mechanisms = "saslMechanisms=SCRAM-SHA-512,SCRAM-SHA-256;saslLoginConfigScope=scram"
    changed = re.sub(r'(<acceptor name="artemis">[^<]*)(</acceptor>)', rf"\1;{mechanisms}\2", text)
    assert changed != text
    (etc / "broker.xml").write_text(changed)
    (etc / "login.config").write_text(_LOGIN)
    (etc / "artemis-users.properties").write_text("bob = secret\n")
    (etc / "artemis-roles.properties").write_text("amq = bob\n")
    with running(command, folder / "artemis.log", os.environ) as alive:
        wait_for_amqp(port, alive)
        yield f"127.0.0.1:{port}"


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-512", "SCRAM-SHA-256"])
async def test_passwords(url: str, mechanism: str) -> None:
    bus = AmqpBus(url, username="bob", password="secret", mechanisms=[mechanism])
    await bus.open(60)
    assert bus.connected
    await bus.close()
    with pytest.raises(AuthenticationError, match=f"user 'bob' was refused \\({mechanism}\\)"):
        await AmqpBus(url, username="bob", password="wrong", mechanisms=[mechanism]).open(60)


@pytest.mark.slow
async def test_what_is_offered(url: str) -> None:
    bus = AmqpBus(url, username="bob", password="secret")
    await bus.open(60)
    await bus.close()
    with pytest.raises(AuthenticationError, match=r"offers SASL SCRAM-SHA-512, SCRAM-SHA-256.*only PLAIN"):
        await AmqpBus(url, username="bob", password="secret", mechanisms=["PLAIN"]).open(60)
