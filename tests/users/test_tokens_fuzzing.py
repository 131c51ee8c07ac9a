"""Tokens of strangers, and what an issuer might sign: they are accepted or refused, and raise nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from support.fuzzing import FEW, MANY, try_all

from qmf.sasl.results import Authenticated, Pending, Rejected
from qmf.users.tokens import TokenOptions, TokenVerifier

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
CLAIMS = (
    b'{"sub":"ann","aud":"broker","exp":4000000000,"groups":["operators","staff"]}',
    b'{"sub":"ann","aud":["broker","web"],"exp":4000000000.5,"nbf":1,"iat":1,"groups":"operators staff"}',
    b'{"sub":null,"aud":{},"exp":"4000000000","nbf":[],"realm_access":{"roles":["operators"]},"groups":{}}',
)
TOKENS = tuple(jwt.PyJWS().encode(claims, KEY, "EdDSA", {"kid": "one"}).encode() for claims in CLAIMS)


@pytest.fixture(scope="module")
def verifier(tmp_path_factory: pytest.TempPathFactory) -> TokenVerifier:
    path: Path = tmp_path_factory.mktemp("keys") / "key.pem"
    path.write_bytes(KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return TokenVerifier(TokenOptions(keys=str(path), audience="broker", groups_claim="groups"))


def readers(verifier: TokenVerifier) -> dict[str, tuple[Callable[[bytes], None], Sequence[bytes]]]:
    def read(token: str) -> None:
        result = verifier.check_token("", token)
        if isinstance(result, Pending):
            result = result.compute()
        assert isinstance(result, Authenticated | Rejected)

    def text(data: bytes) -> None:
        read(data.decode("utf-8", "replace"))

    def signed(data: bytes) -> None:
        read(jwt.PyJWS().encode(data, KEY, "EdDSA"))

    return {"text": (text, TOKENS), "signed": (signed, CLAIMS)}


@pytest.mark.parametrize("reader", ["text", "signed"])
def test_changed_tokens(verifier: TokenVerifier, reader: str) -> None:
    assert try_all(*readers(verifier)[reader], FEW) == FEW


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("reader", ["text", "signed"])
def test_many_changed_tokens(verifier: TokenVerifier, reader: str) -> None:
    assert try_all(*readers(verifier)[reader], MANY) == MANY
