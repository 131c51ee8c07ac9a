"""JSON Web Tokens."""

from __future__ import annotations

import json
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import attrs
import jwt
import pytest
import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from qmf.broker import Broker
from qmf.broker.access.control import FileAccessControl
from qmf.bus import AmqpBus
from qmf.errors import AuthenticationError, ConnectError
from qmf.messaging import aio, exceptions
from qmf.sasl.results import Authenticated, Pending, Rejected
from qmf.users.tokens import TokenError, TokenOptions, TokenVerifier
from qmf.users.verifiers import UsersError

KEY, OTHER = (rsa.generate_private_key(public_exponent=65537, key_size=2048) for _ in range(2))


def token(key: rsa.RSAPrivateKey = KEY, kid: str = "one", **claims: object) -> str:
    merged = {"sub": "ann", "aud": "broker", "iss": "https://id", "exp": time.time() + 600, **claims}
    return jwt.encode({name: value for name, value in merged.items() if value is not None}, key, "RS256", {"kid": kid})


@pytest.fixture(scope="module", params=["jwks", "pem"])
def keys(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("keys") / "keys"
    public = KEY.public_key()
    if request.param == "pem":
        path.write_bytes(
            public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        )
    else:
        entry = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(public))
        path.write_text(json.dumps({"keys": [{**entry, "kid": "one", "use": "sig", "alg": "RS256"}]}))
    return path


def check(keys: Path, text: str, user: str = "", groups: str = "groups") -> Authenticated | Rejected:
    options = TokenOptions(keys=str(keys), audience="broker", issuer="https://id", groups_claim=groups)
    result = TokenVerifier(options).check_token(user, text)
    if isinstance(result, Pending):
        return result.compute()
    assert isinstance(result, Rejected)
    return result


def test_a_token_names_user_and_groups(keys: Path) -> None:
    end = 2_000_000_000
    authenticated = Authenticated("ann", token_end=end + 10.0)
    assert check(keys, token(exp=end)) == authenticated
    operators = attrs.evolve(authenticated, groups=frozenset({"operators"}))
    assert check(keys, token(exp=end, groups=["operators", 1]), "ann") == operators
    assert check(keys, token(exp=end, groups="operators")) == operators
    assert check(keys, token(exp=end, groups=["operators"]), groups="") == authenticated
    nested = token(exp=end, realm_access={"roles": ["operators"]})
    assert check(keys, nested, groups="realm_access.roles") == operators
    assert check(keys, nested, groups="realm_access.roles.x") == authenticated
    scopes = token(exp=end, **{"https://x.y/scope": "operators guests"})  # type: ignore[arg-type]
    assert check(keys, scopes, groups="https://x.y/scope") == attrs.evolve(
        authenticated, groups=frozenset({"operators", "guests"})
    )


@pytest.mark.parametrize(
    "text",
    [
        token(OTHER),
        token(exp=time.time() - 60),
        token(exp=None),
        token(aud="another"),
        token(aud=None),
        token(iss="https://evil"),
        token(sub=None),
        token(sub=""),
        jwt.encode({"sub": "ann", "aud": "broker", "exp": time.time() + 600}, "x" * 32, "HS256"),
        jwt.encode({"sub": "ann", "aud": "broker", "exp": time.time() + 600}, "", "none"),
        "eyJ.x.y",
        "",
        "x" * 40_000,
    ],
    ids=range(13),  # tokens are others in each process
)
def test_tokens_that_are_not_accepted(keys: Path, text: str) -> None:
    assert isinstance(check(keys, text), Rejected)


def test_a_token_of_another_user(keys: Path) -> None:
    assert check(keys, token(), "bob") == Rejected("the token is of 'ann', not of 'bob'")


def test_keys_that_cannot_be_used(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    for text in ("{}", "{", "nothing"):
        path.write_text(text)
        with pytest.raises(UsersError, match="neither a JSON Web Key Set nor a public key"):
            TokenVerifier(TokenOptions(keys=str(path), audience="broker"))


class _Keys(BaseHTTPRequestHandler):
    """Answers with a key set, and counts how often."""

    asked = 0

    def do_GET(self) -> None:
        type(self).asked += 1
        entry = {**json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(KEY.public_key())), "kid": "one", "use": "sig"}
        body = json.dumps({"keys": [entry]}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


def test_keys_by_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(tmp_path / "ca"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    with HTTPServer(("127.0.0.1", 0), _Keys) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            verifier = TokenVerifier(TokenOptions(keys=f"https://localhost:{server.server_port}/", audience="broker"))
            for _ in range(2):
                assert verifier.read(token()).user == "ann"
            assert _Keys.asked == 1
            with pytest.raises(TokenError, match="not accepted"):
                verifier.read(token(OTHER))
        finally:
            server.shutdown()
            thread.join()
    unreachable = TokenVerifier(TokenOptions(keys="https://localhost:1/", audience="broker"))
    with pytest.raises(TokenError, match="not accepted"):
        unreachable.read(token())


async def test_a_broker_takes_tokens(keys: Path) -> None:
    tokens = TokenVerifier(TokenOptions(keys=str(keys), audience="broker"))
    async with Broker(port=0, tokens=tokens) as broker:
        for bus in (AmqpBus(broker.url, token=token()), AmqpBus(broker.url, username="ann", password=token())):
            await bus.open()
            # As messages name the user: the broker says who that is.
            assert bus.user == "ann"
            await bus.close()
        for bus in (AmqpBus(broker.url, token=token(OTHER)), AmqpBus(broker.url, username="bob", password=token())):
            with pytest.raises(AuthenticationError):
                await bus.open()


async def test_a_token_is_asked_for_at_each_login(keys: Path) -> None:
    tokens = TokenVerifier(TokenOptions(keys=str(keys), audience="broker"))
    given = [token(), token(OTHER), token()]

    def next_token() -> str:
        if not given:
            raise UsersError("no token is left")
        return given.pop(0)

    async with Broker(port=0, tokens=tokens) as broker:
        connection = aio.Connection(broker.url, token=next_token)
        await connection.open()
        await connection.close()
        bus = AmqpBus(broker.url, token=next_token)
        with pytest.raises(AuthenticationError):
            await bus.open()
        await bus.open()
        await bus.close()
        with pytest.raises(ConnectError, match="no access token: no token is left"):
            await AmqpBus(broker.url, token=next_token).open()
    with pytest.raises(exceptions.ConnectionError, match="option token: must be a text or a function, not a int"):
        aio.Connection("mq1", token=1)


async def test_groups_of_a_token_in_rules(keys: Path, tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    rules.write_text("acl allow all access\nacl allow readers consume queue\nacl deny all all\n")
    tokens = TokenVerifier(TokenOptions(keys=str(keys), audience="broker", groups_claim="groups"))
    async with Broker(port=0, tokens=tokens, access=FileAccessControl(rules), queues=["q"]) as broker:
        reader = aio.Connection(broker.url, token=token(groups=["readers"]))
        other = aio.Connection(broker.url, token=token())
        await reader.open()
        await other.open()
        await (await reader.session()).receiver("q")
        with pytest.raises(exceptions.UnauthorizedAccess):
            await (await other.session()).receiver("q")
        await reader.close()
        await other.close()
