"""`qmf-users`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from qmf.tools.users.cli import main
from qmf.users.files import read_users
from qmf.users.users import Users


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "users"


def run(monkeypatch: pytest.MonkeyPatch, *words: object, typed: str = "") -> int:
    monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
    return main([str(word) for word in words])


def test_the_life_of_a_user(file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def matches(password: str) -> bool:
        return Users(read_users(file)).matches("ann", password)

    assert run(monkeypatch, "add", file, "ann", typed="first\n") == 0
    assert file.stat().st_mode & 0o777 == 0o600
    assert "first" not in file.read_text(encoding="utf-8")
    assert matches("first")
    assert run(monkeypatch, "add", file, "bob", "--kind", "scrypt", typed="other\n") == 0
    assert run(monkeypatch, "passwd", file, "ann", typed="second\n") == 0
    assert (matches("first"), matches("second")) == (False, True)
    assert run(monkeypatch, "disable", file, "ann") == 0
    assert not matches("second")
    assert run(monkeypatch, "list", file) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split() == ["ann", "SCRAM-SHA-512,", "SCRAM-SHA-256", "disabled"]
    assert lines[4].split() == ["bob", "scrypt", "enabled"]
    assert run(monkeypatch, "enable", file, "ann") == 0
    assert matches("second")
    assert run(monkeypatch, "remove", file, "ann") == 0
    assert list(read_users(file)) == ["bob"]


def test_other_lines_stay(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_text("# those who may\n\nann:a\nbob:b\n", encoding="utf-8")
    assert run(monkeypatch, "disable", file, "ann") == 0
    assert file.read_text(encoding="utf-8") == "# those who may\n\nann:!a\nbob:b\n"


def test_plain_text_is_found(file: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("ann:a\n", encoding="utf-8")
    assert run(monkeypatch, "check", file) == 1
    assert "the password of ann is plain text" in capsys.readouterr().out
    assert run(monkeypatch, "passwd", file, "ann", typed="a\n") == 0
    assert run(monkeypatch, "check", file) == 0


@pytest.mark.parametrize(
    ("words", "typed", "reason"),
    [
        (["add", "FILE", "ann"], "x\n", "there is a user 'ann' already"),
        (["add", "FILE", "a:b"], "x\n", "cannot be the name of a user"),
        (["add", "FILE", "eve"], "\n", "the password is empty"),
        (["passwd", "FILE", "eve"], "x\n", "there is no user 'eve'"),
        (["remove", "FILE", "eve"], "", "there is no user 'eve'"),
        (["list", "nowhere"], "", "nowhere: no such file"),
    ],
)
def test_what_is_refused(
    words: list[str],
    typed: str,
    reason: str,
    file: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    file.write_text("ann:a\n", encoding="utf-8")
    assert run(monkeypatch, *(file if word == "FILE" else word for word in words), typed=typed) == 2
    message = capsys.readouterr().err
    assert message.startswith("qmf-users: ")
    assert reason in message
    assert file.read_text(encoding="utf-8") == "ann:a\n"
