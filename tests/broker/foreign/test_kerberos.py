"""Logins by tickets of a real key distribution centre (MIT Kerberos)."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker.federation.federated import OUT, FederatedBroker, send
from support.foreign import required
from support.kerberos import REALM, Realm, kerberos_realm
from support.waiting import until

from qmf.broker import Broker
from qmf.bus import AmqpBus
from qmf.errors import AuthenticationError
from qmf.sasl.gssapi import KerberosService
from qmf.sasl.mechanism import SaslError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module", autouse=True)
def library() -> Iterator[None]:
    """The library, from the folder where `make foreign` has put it."""
    folder = required("kerberos")
    sys.path.insert(0, folder)
    yield
    sys.path.remove(folder)


@pytest.fixture(scope="module")
def started_realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    with kerberos_realm(tmp_path_factory.mktemp("realm")) as realm:
        yield realm


@pytest.fixture
def realm(started_realm: Realm, monkeypatch: pytest.MonkeyPatch) -> Realm:
    for name, value in started_realm.environment.items():
        monkeypatch.setenv(name, value)
    started_realm.log_in("ann")
    return started_realm


def local(broker: Broker) -> str:
    return f"amqp://localhost:{broker.port}"


async def test_a_ticket_lets_in(realm: Realm) -> None:
    async with Broker(host="localhost", port=0, kerberos=KerberosService(realm.keytab)) as broker:
        for url in (
            local(broker),
            local(broker).replace("//", "//ann@"),
            local(broker).replace("//", f"//ann%40{REALM}@"),
        ):
            bus = AmqpBus(url, mechanisms=["GSSAPI"])
            await bus.open()
            await bus.close()
        bus = AmqpBus(local(broker).replace("//", "//bob@"), mechanisms=["gssapi"])
        with pytest.raises(AuthenticationError, match=r"user 'bob' was refused \(GSSAPI\)"):
            await bus.open()
        with pytest.raises(AuthenticationError, match="offers SASL GSSAPI: it is used only if it is named"):
            await AmqpBus(local(broker)).open()


async def test_a_link_to_another_broker_logs_in_with_a_ticket(realm: Realm) -> None:
    async with (
        FederatedBroker(host="localhost", port=0, queues=["there"], kerberos=KerberosService(realm.keytab)) as there,
        FederatedBroker(port=0, queues=["here"]) as here,
    ):
        here.domain(local(there), sasl_mechanisms="GSSAPI")
        here.link(OUT, "here", "there")
        await send(here, "here", "x")
        await until(lambda: there.depth("there") == 1, lambda: here.found().reason)
        (entry,) = there.queue("there").contents.waiting()
        assert entry.message.origin is not None
        assert entry.message.origin.user == f"ann@{REALM}"


async def test_without_a_ticket(realm: Realm) -> None:
    realm.log_out()
    async with Broker(host="localhost", port=0, kerberos=KerberosService(realm.keytab)) as broker:
        with pytest.raises(AuthenticationError, match=r"GSSAPI: .*No Kerberos credentials available"):
            await AmqpBus(local(broker), mechanisms=["GSSAPI"]).open()


async def test_another_key(realm: Realm, tmp_path: Path) -> None:
    other = tmp_path / "other"
    service = KerberosService(realm.keytab)
    async with Broker(host="localhost", port=0, kerberos=service) as broker:
        # The service has a new key, and its file the old one.
        realm.administer(f"ktadd -k {other} amqp/localhost")
        realm.log_in("ann")
        with pytest.raises(AuthenticationError, match="was refused"):
            await AmqpBus(local(broker), mechanisms=["GSSAPI"]).open()
        realm.keytab.write_bytes(other.read_bytes())
        bus = AmqpBus(local(broker), mechanisms=["GSSAPI"])
        await bus.open()
        await bus.close()


def test_a_file_without_a_key(realm: Realm, tmp_path: Path) -> None:
    with pytest.raises(SaslError, match=f"{tmp_path}/none: GSSAPI: "):
        KerberosService(tmp_path / "none")
