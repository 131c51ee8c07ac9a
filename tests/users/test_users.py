"""Users of the broker: files of them, passwords in plain text and as hashes."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from pathlib import Path

import pytest

from qmf.broker import Broker
from qmf.bus import AmqpBus
from qmf.errors import AuthenticationError
from qmf.users.files import read_users
from qmf.users.users import Users
from qmf.users.verifiers import UsersError, hash_password

USERS: Mapping[str, str] = {"guest": "s:cret", "other": "pässword"}


def made_by_another_program(password: str, cost: int = 4) -> str:
    """A hash as passlib writes it, cheap to check."""
    salt = b"12345678"
    digest = hashlib.scrypt(password.encode(), salt=salt, n=1 << cost, r=8, p=1, dklen=32)
    texts = [base64.b64encode(data).decode().rstrip("=") for data in (salt, digest)]
    return f"$scrypt$ln={cost},r=8,p=1${texts[0]}${texts[1]}"


def test_hashes_differ_and_fit_their_password_alone() -> None:
    first, second = hash_password("pässword"), hash_password("pässword")
    assert first != second
    assert first.startswith("$scrypt$ln=14,r=8,p=1$")
    assert "pässword" not in first
    users = Users({"ann": first, "bob": "plain"})
    assert users.plain == ("bob",)
    for _ in range(2):
        assert users.matches("ann", "pässword")
        assert not users.matches("ann", "password")
    assert not users.matches("ann", first)
    assert not users.matches("ann", "")
    assert users.matches("bob", "plain")
    assert not users.matches("bob", "pässword")
    assert not users.matches("nobody", "pässword")
    assert not users.matches("", "")


def test_hashes_of_other_programs() -> None:
    users = Users({"ann": made_by_another_program("secret")})
    assert users.matches("ann", "secret")
    assert not users.matches("ann", "Secret")


def test_plain_passwords() -> None:
    users = Users(USERS)
    assert users.matches("guest", "s:cret")
    assert users.matches("other", "pässword")
    for name, password in (("guest", "pässword"), ("guest", ""), ("nobody", ""), ("nobody", "s:cret")):
        assert not users.matches(name, password)


async def test_a_broker_with_hashes() -> None:
    async with Broker(port=0, users={"ann": made_by_another_program("secret")}) as broker:
        for _ in range(2):
            bus = AmqpBus(broker.url, username="ann", password="secret")
            await bus.open()
            await bus.close()
        with pytest.raises(AuthenticationError, match=r"user 'ann' was refused \(PLAIN\)"):
            await AmqpBus(broker.url, username="ann", password="wrong").open()


@pytest.mark.parametrize(
    "text",
    [
        "$scrypt$",
        "$scrypt$ln=14,r=8,p=1$c2FsdA",
        "$scrypt$ln=0,r=8,p=1$MTIzNDU2Nzg$" + "A" * 43,
        "$scrypt$ln=25,r=8,p=1$MTIzNDU2Nzg$" + "A" * 43,
        "$scrypt$ln=18,r=99,p=9$MTIzNDU2Nzg$" + "A" * 43,
        "$scrypt$ln=14,r=0,p=1$MTIzNDU2Nzg$" + "A" * 43,
        "$scrypt$ln=14,r=8,p=1$MTIzNDU2Nzg$" + "A" * 41,
        "$scrypt$ln=14,r=8,p=1$MTIzNDU2Nzg$" + "!" * 43,
    ],
)
def test_malformed_hashes(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsersError, match=r"^user 'ann': (the hash of the password|a part of a hash)"):
        Users({"ann": text})
    path = tmp_path / "users"
    path.write_text(f"ann:{text}\n", encoding="utf-8")
    with pytest.raises(UsersError, match=r":1: user 'ann': (the hash of the password|a part of a hash)") as caught:
        read_users(path)
    assert text not in str(caught.value)


def test_reading_users(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("# comment\n\nguest:s:cret\nother:pässword\n", encoding="utf-8")
    assert read_users(path) == USERS


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no users"),
        ("guest\n", ":1: expected name:password"),
        ("# x\n:secret\n", ":2: expected name:password"),
        ("guest:\n", ":1: expected name:password"),
        ("a:b\na:c\n", ":2: user 'a' is defined twice"),
    ],
)
def test_users_that_are_wrong(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "users"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsersError) as caught:
        read_users(path)
    assert str(caught.value) == f"{path}{reason}" if reason.startswith(":") else f"{path}: {reason}"
    assert "secret" not in str(caught.value)


def test_users_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(UsersError, match="No such file"):
        read_users(tmp_path / "none")
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(UsersError, match="not UTF-8"):
        read_users(path)
