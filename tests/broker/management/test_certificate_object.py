"""The certificate of a broker as an object, and the events before its end."""

from __future__ import annotations

import ssl
from typing import Any

import attrs
import pytest
import trustme

from qmf.broker import Broker
from qmf.broker.certificates import CertificateFacts
from qmf.broker.management.certificate_object import ManagedCertificate
from qmf.console.aio import Client
from qmf.models.security import console as remote

DAY = 24 * 60 * 60


def new_certificate() -> bytes:
    issued = trustme.CA(organization_name="Tests").issue_cert("localhost", common_name="broker")
    return ssl.PEM_cert_to_DER_cert(issued.cert_chain_pems[0].bytes().decode())


def end_of(der: bytes) -> float:
    found = CertificateFacts.of(der)
    assert found is not None
    return found.end.timestamp()


@attrs.define
class Setting:
    """A broker's certificate and clock, and what its agent raises."""

    der: bytes = attrs.field(factory=new_certificate)
    now: float = 0.0
    events: list[Any] = attrs.field(factory=list)

    def raise_event(self, event: Any) -> None:
        self.events.append(event)

    def managed(self) -> ManagedCertificate:
        return ManagedCertificate(self, lambda: self.der, lambda: self.now)  # type: ignore[arg-type]


def test_an_event_at_each_limit(caplog: pytest.LogCaptureFixture) -> None:
    setting = Setting()
    managed, end = setting.managed(), end_of(setting.der)
    for left in (40 * DAY, 31 * DAY, 29 * DAY, 20 * DAY, 6 * DAY, 5 * DAY, DAY, 1, -1, -DAY):
        setting.now = end - left
        managed.sample()
        assert managed.remaining == left
    assert [event.remaining for event in setting.events] == [29 * DAY, 6 * DAY, DAY, -1]
    assert {event.serial for event in setting.events} == {managed.serial}
    assert len(caplog.messages) == 3  # the first warning is the program's, when it reads the files


def test_a_new_certificate() -> None:
    setting = Setting()
    managed = setting.managed()
    setting.now = end_of(setting.der) - 1
    managed.sample()
    old, setting.der = managed.serial, new_certificate()
    setting.now = end_of(setting.der) - 100 * DAY
    managed.sample()
    assert managed.serial != old
    assert (managed.remaining, len(setting.events)) == (100 * DAY, 1)


async def test_a_broker_with_tls() -> None:
    der = new_certificate()
    async with (
        Broker(port=0, server_certificate=lambda: der, management=3600.0) as broker,
        Client(broker.url, settle=0.0) as client,
    ):
        await client.locate(settle=0.0)
        (found,) = await client.objects(remote.Certificate)
    assert "Common Name: broker" in found.subject
    assert found.remaining > 0
    assert found.notBefore < found.notAfter
