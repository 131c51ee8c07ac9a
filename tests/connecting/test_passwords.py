"""Where passwords come from, and that they are shown nowhere."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import keyring
import keyring.backend
import keyring.errors
import pytest

from qmf.bus import BusUrl
from qmf.connecting import PasswordError, PasswordFinder

URL = BusUrl("mq1", 5671, tls=True, username="ann")


class Keyring(keyring.backend.KeyringBackend):
    """Keeps passwords in memory."""

    priority = 1.0

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.passwords: dict[tuple[str, str], str] = {}
        self.locked = False

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise keyring.errors.KeyringLocked("it is locked")
        return self.passwords.get((service, username))

    def set_password(self, service: str, username: str, password: str) -> None:
        self.passwords[service, username] = password

    def delete_password(self, service: str, username: str) -> None:
        del self.passwords[service, username]


@pytest.fixture
def ring() -> Iterator[Keyring]:
    before = keyring.get_keyring()
    ring = Keyring()
    keyring.set_keyring(ring)
    yield ring
    keyring.set_keyring(before)


def secret_file(tmp_path: Path, text: str = "from file\nmore\n") -> Path:
    path = tmp_path / "password"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o600)
    return path


def test_the_sources_in_their_order(tmp_path: Path, ring: Keyring) -> None:
    ring.set_password("qmf", "ann@mq1:5671", "from keyring")
    environ = {"QMF_PASSWORD": "from environment"}
    file = secret_file(tmp_path)
    every = PasswordFinder(environ, file=file, keyring=True, always_ask=True, ask=lambda _: "typed")
    assert every.find(URL) == "typed"
    assert PasswordFinder(environ, file=file, keyring=True).find(URL) == "from file"
    assert PasswordFinder(environ, keyring=True).find(URL) == "from environment"
    assert PasswordFinder({}, keyring=True, ask=lambda _: "typed").find(URL) == "from keyring"
    assert PasswordFinder({}, ask=lambda _: "typed").find(URL) == "typed"


def test_a_user_is_asked_once_and_told_where_the_password_goes() -> None:
    questions: list[str] = []

    def ask(question: str) -> str:
        questions.append(question)
        return "typed"

    finder = PasswordFinder({}, ask=ask)
    assert finder.find(URL) == finder.find(BusUrl("mq2", username="ann")) == "typed"
    assert questions == ["Password of ann at amqps://mq1:5671: "]
    assert "typed" not in repr(finder)


def test_no_password_anywhere() -> None:
    with pytest.raises(PasswordError, match=r"^no password for user 'ann': set QMF_PASSWORD, or use --password-file"):
        PasswordFinder({}, ask=lambda _: None).find(URL)


def test_files_that_are_no_good(tmp_path: Path) -> None:
    for path, reason in (
        (tmp_path / "none", "cannot read the password file .*: no such file or directory"),
        (secret_file(tmp_path, "\nsecret\n"), "the first line of the password file .* is empty"),
    ):
        with pytest.raises(PasswordError, match=reason) as caught:
            PasswordFinder({}, file=path).find(URL)
        assert "secret" not in str(caught.value)
    path = tmp_path / "binary"
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(PasswordError, match="is not UTF-8"):
        PasswordFinder({}, file=path).find(URL)


def test_a_file_that_others_can_read_is_used_with_a_warning(tmp_path: Path) -> None:
    warnings: list[str] = []
    path = secret_file(tmp_path)
    finder = PasswordFinder({}, file=path, warn=warnings.append)
    assert finder.find(URL) == "from file"
    assert warnings == []
    path.chmod(0o644)
    assert finder.find(URL) == "from file"
    assert warnings == [f"other users can read the password file {path}: chmod 600 {path}"]


def test_a_keyring_without_the_password_says_how_to_add_it(ring: Keyring) -> None:
    with pytest.raises(PasswordError, match=r"keyring set qmf ann@mq1:5671$"):
        PasswordFinder({}, keyring=True).find(URL)
    ring.locked = True
    with pytest.raises(PasswordError, match=r"^cannot read the keyring: it is locked$"):
        PasswordFinder({}, keyring=True).find(URL)


def test_the_keyring_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(PasswordError, match=r"pip install '\.\[keyring\]'"):
        PasswordFinder({}, keyring=True).find(URL)
