"""Files of TLS: what they do, and what is said when they cannot be used."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import attrs
import pytest
import trustme
from cryptography.hazmat.primitives import serialization

from qmf.broker import Broker
from qmf.bus import parse_url
from qmf.connecting import BrokerTarget, TlsError, TlsFiles
from qmf.errors import ConnectError


@attrs.frozen
class Files:
    """Certificates as files, and the contexts of brokers that fit them."""

    folder: Path
    authority: trustme.CA

    def server(self, name: str = "127.0.0.1", *, ask: bool = False) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.authority.issue_cert(name).configure_cert(context)
        if ask:
            context.verify_mode = ssl.CERT_REQUIRED
            self.authority.configure_trust(context)
        return context


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder, authority = tmp_path_factory.mktemp("tls"), trustme.CA()
    authority.cert_pem.write_to_path(folder / "ca.pem")
    client, other = authority.issue_cert("ann"), authority.issue_cert("bob")
    client.private_key_and_cert_chain_pem.write_to_path(folder / "both.pem")
    client.cert_chain_pems[0].write_to_path(folder / "cert.pem")
    client.private_key_pem.write_to_path(folder / "key.pem")
    other.private_key_pem.write_to_path(folder / "other.pem")
    key = serialization.load_pem_private_key(client.private_key_pem.bytes(), None)
    encrypted = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    )
    (folder / "encrypted.pem").write_bytes(encrypted)
    (folder / "text.pem").write_text("text", encoding="utf-8")
    return Files(folder, authority)


async def connect(broker: Broker, tls: TlsFiles) -> None:
    bus = BrokerTarget(url=parse_url(broker.url), tls=tls).make_bus()
    try:
        await bus.open(30)
        assert bus.connected
    finally:
        await bus.close()


async def test_the_authority_that_is_named_is_trusted(files: Files) -> None:
    async with Broker(port=0, ssl_context=files.server()) as broker:
        await connect(broker, TlsFiles(ca=files.folder / "ca.pem"))
        with pytest.raises(ConnectError, match=r"--ca FILE"):
            await connect(broker, TlsFiles())


async def test_any_certificate_is_accepted_where_that_is_wanted(files: Files) -> None:
    async with Broker(port=0, ssl_context=files.server("elsewhere.example.org")) as broker:
        with pytest.raises(ConnectError, match="it is not for the address"):
            await connect(broker, TlsFiles(ca=files.folder / "ca.pem"))
        await connect(broker, TlsFiles(insecure=True))
        await connect(broker, TlsFiles(ca=files.folder / "ca.pem", insecure=True))


async def test_a_certificate_of_the_client(files: Files) -> None:
    ca = files.folder / "ca.pem"
    async with Broker(port=0, ssl_context=files.server(ask=True)) as broker:
        await connect(broker, TlsFiles(ca=ca, cert=files.folder / "both.pem"))
        await connect(broker, TlsFiles(ca=ca, cert=files.folder / "cert.pem", key=files.folder / "key.pem"))


@pytest.mark.parametrize(
    ("named", "reason"),
    [
        ({"ca": "none.pem"}, r"^cannot read the CA file .*none\.pem: no such file or directory$"),
        ({"ca": "text.pem"}, r"^the CA file .*text\.pem has no certificate in PEM \(a block BEGIN CERTIFICATE\)$"),
        ({"ca": "key.pem"}, r"^the CA file .*key\.pem has no certificate in PEM"),
        ({"cert": "none.pem"}, r"^cannot read the certificate .*none\.pem: no such file"),
        ({"cert": "both.pem", "key": "none.pem"}, r"^cannot read the private key .*none\.pem: no such file"),
        (
            {"cert": "cert.pem"},
            r"^the certificate .*cert\.pem has no private key in its file: name the file",
        ),
        ({"cert": "key.pem"}, r"^.*key\.pem has no certificate in PEM"),
        ({"cert": "cert.pem", "key": "text.pem"}, r"^.*text\.pem has no private key in PEM"),
        ({"cert": "cert.pem", "key": "other.pem"}, r"^the private key in .*other\.pem does not belong to the certif"),
        (
            {"cert": "cert.pem", "key": "encrypted.pem"},
            r"^the private key in .*encrypted\.pem is encrypted: decrypt",
        ),
        ({"key": "key.pem"}, r"^--key needs --cert"),
    ],
)
def test_files_that_cannot_be_used(files: Files, named: dict[str, str], reason: str) -> None:
    paths: dict[str, Any] = {name: files.folder / file for name, file in named.items()}
    with pytest.raises(TlsError, match=reason) as caught:
        TlsFiles(**paths).context()
    assert "\n" not in str(caught.value)
