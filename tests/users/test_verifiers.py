"""What passwords are checked with."""

from __future__ import annotations

import pytest

from qmf.users.users import Users
from qmf.users.verifiers import (
    UsersError,
    describe_verifier,
    enable_verifier,
    hash_password,
    parse_verifier,
    scram_text,
)

KEYS = scram_text("pencil")


def test_keys_check_passwords() -> None:
    assert "pencil" not in KEYS
    users = Users({"ann": KEYS, "bob": "plain"})
    for _ in range(2):
        assert users.matches("ann", "pencil")
        assert not users.matches("ann", "Pencil")
        assert not users.matches("ann", "a\u0007b")
    assert not users.matches("eve", "pencil")
    assert users.plain == ("bob",)


def test_disabled_users_do_not_log_in() -> None:
    for text in (KEYS, hash_password("pencil"), "pencil"):
        assert Users({"ann": text}).matches("ann", "pencil")
        disabled = enable_verifier(text, False)
        assert not Users({"ann": disabled}).matches("ann", "pencil")
        assert enable_verifier(disabled, False) == disabled
        assert enable_verifier(disabled, True) == text


def test_unknown_users_have_keys_that_are_the_same_each_time() -> None:
    users = Users({"ann": KEYS})
    first = users.scram_keys("eve", "SCRAM-SHA-256")
    assert first == users.scram_keys("eve", "SCRAM-SHA-256")
    assert first != users.scram_keys("eva", "SCRAM-SHA-256")
    known = users.scram_keys("ann", "SCRAM-SHA-256")
    assert (first.iterations, len(first.salt), len(first.stored_key)) == (known.iterations, 16, len(known.stored_key))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (KEYS, ("SCRAM-SHA-512, SCRAM-SHA-256", "enabled")),
        ("!" + KEYS.split()[1], ("SCRAM-SHA-256", "disabled")),
        (hash_password("x"), ("scrypt", "enabled")),
        ("x", ("plain text", "enabled")),
    ],
    ids=["keys", "disabled", "scrypt", "plain"],  # hashes are others in each process
)
def test_verifiers_are_described(text: str, words: tuple[str, str]) -> None:
    assert describe_verifier(text) == words


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SCRAM-SHA-256$", "malformed"),
        ("SCRAM-SHA-1$4096:AAAA$AAAA:AAAA", "malformed"),
        ("SCRAM-SHA-256$4096:AAAA$AAAA:AAAA", "keys of SCRAM-SHA-256 have 32 bytes"),
        ("SCRAM-SHA-256$1:AAAA$AAAA:AAAA", "4096 to 2500000 iterations, not 1"),
        ("SCRAM-SHA-256$9999999:AAAA$AAAA:AAAA", "iterations"),
        (KEYS + " x", "malformed"),
    ],
    ids=["nothing", "sha-1", "short", "few", "many", "more"],
)
def test_keys_that_are_wrong(text: str, reason: str) -> None:
    with pytest.raises(UsersError, match=reason):
        parse_verifier(text)
    assert parse_verifier(KEYS)[1]


def test_passwords_that_sasl_does_not_permit() -> None:
    with pytest.raises(UsersError, match="SCRAM-SHA-512"):
        scram_text("a\u0007b")
