"""What links log in with: every mechanism, through TLS, with files that may be wrong."""

from __future__ import annotations

import time
from pathlib import Path

import attrs
import jwt
import pytest
import trustme
from broker.federation.federated import OUT, FederatedBroker, send
from broker.federation.routed import RoutedBroker
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from support.waiting import until

from qmf.broker.daemon.tls import BrokerTls, TlsOptions
from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.federation.peer_credentials import CredentialsUnusable, PeerCredentials
from qmf.broker.operations.forwarders import ForwardingError
from qmf.broker.operations.principal import BROKER
from qmf.users.tokens import TokenOptions, TokenVerifier


@attrs.frozen
class Files:
    """What both sides have in files."""

    authority: Path
    server: Path
    client: Path
    tokens: Path
    token: Path
    text: Path


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    folder = tmp_path_factory.mktemp("credentials")
    made = Files(*(folder / field.name for field in attrs.fields(Files)))
    authority = trustme.CA()
    authority.cert_pem.write_to_path(made.authority)
    authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(made.server)
    authority.issue_cert("ann@example.org", common_name="ann").private_key_and_cert_chain_pem.write_to_path(made.client)
    key = ec.generate_private_key(ec.SECP256R1())
    public = serialization.PublicFormat.SubjectPublicKeyInfo
    made.tokens.write_bytes(key.public_key().public_bytes(serialization.Encoding.PEM, public))
    claims = {"sub": "ann", "aud": "broker", "exp": time.time() + 600}
    made.token.write_text(jwt.encode(claims, key, "ES256") + "\n", encoding="utf-8")
    made.text.write_text("", encoding="utf-8")
    return made


#: Properties of a domain by the mechanism that they use; names of files stand for these.
LOGINS: dict[str, dict[str, str]] = {
    "EXTERNAL": {"ssl_certfile": "client"},
    "PLAIN": {"username": "ann", "password": "secret"},
    "SCRAM-SHA-256": {"username": "ann", "password": "secret"},
    "SCRAM-SHA-256-PLUS": {"username": "ann", "password": "secret"},
    "SCRAM-SHA-512-PLUS": {"username": "ann", "password": "secret"},
    "OAUTHBEARER": {"token_file": "token"},
}


def properties_of(mechanism: str, files: Files) -> dict[str, str]:
    named = {name: getattr(files, value, value) for name, value in LOGINS[mechanism].items()}
    return {name: str(value) for name, value in {**named, "ssl_trustfile": files.authority}.items()}


@pytest.fixture
def options(files: Files) -> dict[str, object]:
    """Of a broker where ann may log in by all mechanisms."""
    tls = BrokerTls(TlsOptions(cert=files.server, client_ca=files.authority))
    return {
        "ssl_context": tls.context,
        "server_certificate": lambda: tls.certificate,
        "users": {"ann": "secret"},
        "certificates": True,
        "tokens": TokenVerifier(TokenOptions(keys=str(files.tokens), audience="broker")),
    }


@pytest.mark.slow
@pytest.mark.parametrize("mechanism", LOGINS)
async def test_a_link_logs_in(mechanism: str, files: Files, options: dict[str, object]) -> None:
    async with (
        FederatedBroker(port=0, queues=["there"], **options) as there,  # type: ignore[arg-type]
        RoutedBroker(queues=["here"]) as here,
    ):
        wanted = properties_of(mechanism, files)
        here.domain(there.url, sasl_mechanisms=mechanism, **wanted)
        here.link(OUT, "here", "there")
        await send(here, "here", "x")
        await until(lambda: there.depth("there") == 1, lambda: here.found().reason)
        place = {"host": "127.0.0.1", "port": there.port, "transport": "ssl", "authMechanism": mechanism}
        here.operations.forwarding.create(BROKER, "link", "route link", {**place, **wanted}, strict=True)
        (link,) = here.federation.route_links
        await until(lambda: link.status.state is PeerLinkState.OPERATIONAL, lambda: link.reason)
        (entry,) = there.queue("there").contents.waiting()
        assert entry.message.origin is not None
        assert entry.message.origin.user == "ann"


@pytest.mark.parametrize(
    ("properties", "reason"),
    [
        ({"ssl_trustfile": "nowhere"}, "ssl_trustfile: 'nowhere' cannot be used: No such file"),
        ({"ssl_certfile": "nowhere"}, "ssl_certfile: 'nowhere' cannot be used: No such file"),
        ({"ssl_keyfile": "nowhere"}, r"ssl_keyfile: the certificate is missing \(ssl_certfile\)"),
        ({"token_file": "nowhere"}, "token_file: 'nowhere' cannot be used: No such file"),
        ({"ssl_trustfile": 7}, "ssl_trustfile: must be text"),
    ],
)
async def test_files_that_cannot_be_used_are_named(properties: dict[str, object], reason: str) -> None:
    async with RoutedBroker() as here:
        with pytest.raises(ForwardingError, match=f"invalid-argument: {reason}"):
            here.domain("amqps://127.0.0.1", **properties)  # type: ignore[arg-type]
        place = {"host": "127.0.0.1", "port": 5671, "transport": "ssl"}
        with pytest.raises(ForwardingError, match=reason):
            here.operations.forwarding.create(BROKER, "link", "link", {**place, **properties}, strict=True)


def test_files_without_what_they_should_have(files: Files) -> None:
    with pytest.raises(CredentialsUnusable, match=r"token_file: '.*' is empty"):
        PeerCredentials(token=files.text).check()
    with pytest.raises(CredentialsUnusable, match="ssl_certfile"):
        PeerCredentials(certificate=files.authority).check()
    with pytest.raises(CredentialsUnusable, match="ssl_trustfile"):
        PeerCredentials(trusted=files.token).check()


async def test_a_file_that_is_missing_later_is_the_reason(files: Files, tmp_path: Path) -> None:
    copy = tmp_path / "authority"
    copy.write_bytes(files.authority.read_bytes())
    async with FederatedBroker(port=0, queues=["here"]) as here:
        here.domain("amqps://127.0.0.1:1", ssl_trustfile=str(copy))
        copy.unlink()
        here.link(OUT, "here", "there")
        link = await here.state(PeerLinkState.WAITING)
        assert f"ssl_trustfile: {str(copy)!r} cannot be used" in link.reason
        copy.write_bytes(files.authority.read_bytes())
        await until(lambda: "connection refused" in link.reason, lambda: link.reason)


async def test_a_link_for_routes_has_alternate_hosts() -> None:
    async with RoutedBroker() as there, RoutedBroker() as here:
        properties = {"host": "127.0.0.1", "port": 1, "alternates": f"127.0.0.1,127.0.0.1:{there.port}"}
        here.operations.forwarding.create(BROKER, "link", "link", properties, strict=True)
        (link,) = here.federation.route_links
        await until(lambda: link.status.state is PeerLinkState.OPERATIONAL, lambda: link.reason)
        assert link.place == ("127.0.0.1", there.port, False)
        assert link.domain.url == f"amqp://127.0.0.1:1,amqp://127.0.0.1:1,amqp://127.0.0.1:{there.port}"


@pytest.mark.parametrize(
    ("alternates", "reason"),
    [
        (["two", 3], "must be a text or a list of texts"),
        ("amqps://two", "must be HOST or HOST:PORT"),
        ("ann@two", "must be HOST or HOST:PORT"),
        ("two:port", "is not a bus URL"),
    ],
)
async def test_alternates_that_are_refused(alternates: object, reason: str) -> None:
    async with RoutedBroker() as here:
        properties = {"host": "one", "port": 5672, "alternates": alternates}
        with pytest.raises(ForwardingError, match=f"alternates: .*{reason}"):
            here.operations.forwarding.create(BROKER, "link", "link", properties, strict=True)
