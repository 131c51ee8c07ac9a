"""`drain` and `spout` as installed commands; `tests/examples` runs them as the manual does."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

import pytest

from qmf import __version__, _entry
from qmf.broker import EmbeddedBroker
from qmf.tools.messages.drain import main as drain
from qmf.tools.messages.spout import main as spout

ROOT = Path(__file__).resolve().parents[3]


def test_they_are_installed() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts["drain"] == "qmf._entry:drain"
    assert scripts["spout"] == "qmf._entry:spout"


@pytest.mark.parametrize("name", ["drain", "spout"])
def test_the_version_names_the_command(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["__main__.py", "--version"])
    with pytest.raises(SystemExit) as caught:
        getattr(_entry, name)()
    assert caught.value.code == 0
    assert capsys.readouterr().out == f"{name} {__version__}\n"


def test_what_is_sent_is_received(capsys: pytest.CaptureFixture[str]) -> None:
    with EmbeddedBroker(queues=["orders"]) as broker:
        assert spout(["-b", broker.url, "orders", "one", "two", "-c", "2", "-I", "x"]) == 0
        assert drain(["-b", broker.url, "orders"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        f"Message(properties={{spout-id:x:{number}}}, content='one two')" for number in range(2)
    ]
