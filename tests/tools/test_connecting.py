"""How qpidd's tools reach their broker: addresses, named contexts, passwords, TLS."""

from __future__ import annotations

import argparse
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import trustme

from qmf.broker import EmbeddedBroker
from qmf.connecting import TokenFile
from qmf.errors import QmfError
from qmf.tools.config.cli import main as config
from qmf.tools.connecting import BrokerAccess, ToolParser, access_of, add_connection_options
from qmf.tools.stat.cli import main as stat


def parsed(*words: str) -> argparse.Namespace:
    parser = ToolParser("tool")
    add_connection_options(parser, "-a")
    return parser.parse_args(words)


def access(
    *words: str, home: Path | None = None, answer: str | None = None, environ: Mapping[str, str] | None = None
) -> BrokerAccess:
    folders = {} if home is None else {"XDG_CONFIG_HOME": str(home)}
    return access_of(parsed(*words), environ={**folders, **(environ or {})}, ask=lambda _: answer)


def settings(home: Path, text: str) -> Path:
    file = home / "qmf-shell" / "config.toml"
    file.parent.mkdir()
    file.write_text(text)
    return home


CONTEXTS = """
context = "lab"
[contexts.lab]
url = "amqp://lab.example:5673"
user = "ann"
password-file = "secret"
[contexts.two]
url = ["mq1", "mq2"]
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    settings(tmp_path, CONTEXTS)
    secret = tmp_path / "qmf-shell" / "secret"
    secret.write_text("from the file\n")
    secret.chmod(0o600)
    return tmp_path


def test_without_anything_it_is_this_machine(home: Path) -> None:
    assert access(home=home) == BrokerAccess("localhost", {})


def test_a_context_names_the_broker(home: Path) -> None:
    found = BrokerAccess("amqp://lab.example:5673", {"username": "ann", "password": "from the file"})
    assert access("--context", "lab", home=home) == found
    assert access(home=home, environ={"QMF_CONTEXT": "lab"}) == found
    assert "from the file" not in repr(found)
    assert access("-a", "mq1", home=home, environ={"QMF_CONTEXT": "lab"}) == BrokerAccess("mq1", {})


@pytest.mark.parametrize(
    ("words", "environ", "options"),
    [
        (["--user", "ann"], {"QMF_PASSWORD": "x"}, {"username": "ann", "password": "x"}),
        (["-a", "ann@mq1"], {}, {"username": "ann", "password": "typed"}),
        (["-a", "ann/secret@mq1"], {}, {}),
        (["-a", "amqp:tcp:mq1:5672"], {}, {}),
        (["--user", "ann", "--ask-password"], {"QMF_PASSWORD": "x"}, {"username": "ann", "password": "typed"}),
        (["--sasl-mechanism", "ANONYMOUS"], {}, {"sasl_mechanisms": "ANONYMOUS"}),
    ],
)
def test_users(words: list[str], environ: dict[str, str], options: dict[str, Any]) -> None:
    assert access(*words, answer="typed", environ=environ).options == options


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--context", "lab", "-a", "mq1"], "--context and an address: give one of them"),
        (["--context", "lob"], "did you mean lab"),
        (["--context", "two"], "context two has 2 brokers: give the address of one"),
        (["-a", "ann@mq1", "--user", "bob"], "two users: 'ann' in the address, and 'bob'"),
        (["--user", "bob"], "no password for user 'bob'"),
        (["--ca", "/nowhere.pem"], "cannot read the CA file /nowhere.pem"),
    ],
)
def test_mistakes(words: list[str], reason: str, home: Path) -> None:
    with pytest.raises(QmfError, match=reason):
        access(*words, home=home)


def test_a_token(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    assert access("-a", "ann@mq1", "--token-file", str(file)).options == {"username": "ann", "token": TokenFile(file)}
    assert access("--token-file", str(file)).options == {"token": TokenFile(file)}


def test_tools_with_a_context_with_tls(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("QMF_PASSWORD", "secret")
    with EmbeddedBroker(management=3600.0, users={"ann": "secret"}, ssl_context=server) as broker:
        lab = f'[contexts.lab]\nurl = "{broker.url}"\nuser = "ann"\n'
        settings(tmp_path, lab + f'ca = "{tmp_path}/ca.pem"\n' + lab.replace("lab", "open") + "insecure = true\n")
        for name in ("lab", "open"):
            assert config(["exchanges", "amq.topic", "--context", name]) == 0
            assert "amq.topic" in capsys.readouterr().out
        assert stat(["-e", "--ca", f"{tmp_path}/ca.pem", "--user", "ann", "-a", broker.url]) == 0
        assert "amq.topic" in capsys.readouterr().out
        assert stat(["-e", "--user", "ann", "-a", broker.url]) == 1
        assert "certificate" in capsys.readouterr().err
