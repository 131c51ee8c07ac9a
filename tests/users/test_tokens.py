"""JSON Web Tokens."""

from __future__ import annotations

import json
import time
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from qmf.broker import Broker
from qmf.bus import AmqpBus
from qmf.errors import AuthenticationError
from qmf.sasl.results import Authenticated, Pending, Rejected
from qmf.users.tokens import TokenOptions, TokenVerifier
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


def check(keys: Path, text: str, user: str = "") -> Authenticated | Rejected:
    options = TokenOptions(keys=str(keys), audience="broker", issuer="https://id")
    result = TokenVerifier(options).check_token(user, text)
    if isinstance(result, Pending):
        return result.compute()
    assert isinstance(result, Rejected)
    return result


def test_a_token_names_user_and_groups(keys: Path) -> None:
    assert check(keys, token()) == Authenticated("ann")
    assert check(keys, token(groups=["operators", 1]), "ann") == Authenticated("ann", groups=("operators",))
    assert check(keys, token(groups="operators")) == Authenticated("ann", groups=("operators",))


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


async def test_a_broker_takes_tokens(keys: Path) -> None:
    tokens = TokenVerifier(TokenOptions(keys=str(keys), audience="broker"))
    async with Broker(port=0, tokens=tokens) as broker:
        for bus in (AmqpBus(broker.url, token=token()), AmqpBus(broker.url, username="ann", password=token())):
            await bus.open()
            await bus.close()
        for bus in (AmqpBus(broker.url, token=token(OTHER)), AmqpBus(broker.url, username="bob", password=token())):
            with pytest.raises(AuthenticationError):
                await bus.open()
