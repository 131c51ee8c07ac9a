"""Named contexts of the settings file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from qmf.connecting import ConnectionContext, ContextError, TlsFiles, read_contexts
from qmf.errors import NotFoundError

FULL = """
output = "json"
context = "lab"

[contexts.lab]
url = "amqps://mq1.lab"
user = "ann"
password-file = "lab.password"
ca = "/etc/lab/ca.pem"
cert = "ann.pem"
key = "ann.key"
domain = "lab"
colour = "green"
lake = "lake"

[contexts.prod]
url = ["amqps://bob@mq1", "amqps://bob@mq2:5999"]
keyring = true
insecure = true
colour = "red"
lake = "hdfs://lakes/prod"
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_everything_a_context_may_say(tmp_path: Path) -> None:
    contexts = read_contexts(write(tmp_path, FULL))
    assert contexts.default == "lab"
    assert contexts.by_name == {
        "lab": ConnectionContext(
            name="lab",
            urls=("amqps://mq1.lab",),
            user="ann",
            password_file=tmp_path / "lab.password",
            tls=TlsFiles(ca=Path("/etc/lab/ca.pem"), cert=tmp_path / "ann.pem", key=tmp_path / "ann.key"),
            domain="lab",
            colour="green",
            lake=str(tmp_path / "lake"),
        ),
        "prod": ConnectionContext(
            name="prod",
            urls=("amqps://bob@mq1", "amqps://bob@mq2:5999"),
            keyring=True,
            tls=TlsFiles(insecure=True),
            colour="red",
            lake="hdfs://lakes/prod",
        ),
    }
    assert contexts.find("prod").name == "prod"
    with pytest.raises(NotFoundError, match=r"^no context 'pord'; did you mean prod\?$"):
        contexts.find("pord")


def test_a_path_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    path = write(tmp_path, '[contexts.lab]\nurl = "amqps://mq1"\nca = "~/ca.pem"\n')
    assert read_contexts(path).find("lab").tls.ca == Path("/home/ann/ca.pem")


def test_no_file_has_no_contexts(tmp_path: Path) -> None:
    assert read_contexts(None).by_name == read_contexts(tmp_path / "none").by_name == {}
    assert read_contexts(write(tmp_path, "interval = 3\n")).default is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1\n[contexts.lab]\n", "config.toml:2: context lab: url is missing"),
        ('[contexts.lab]\nurl = "ftp://x"\n', "context lab: url: 'ftp://x' is not a bus URL: unknown scheme 'ftp'"),
        ("[contexts.lab]\nurl = []\n", "context lab: url is empty"),
        ("[contexts.lab]\nurl = 5\n", "context lab: url must be a text"),
        ('[contexts.lab]\nurl = "a"\nusr = "x"\n', "config.toml:3: context lab: no setting 'usr'; did you mean user"),
        ('[contexts.lab]\nurl = "a"\ncolour = "pink"\n', "context lab: colour must be red, .* or cyan, not 'pink'"),
        ('[contexts.lab]\nurl = "a"\nkeyring = "yes"\n', "context lab: keyring must be true or false"),
        ('[contexts.lab]\nurl = "a"\npassword = "secret"\n', "context lab: a password does not belong into this file"),
        ('[contexts.lab]\nurl = "u:secret@a"\n', "context lab: url: a password does not belong into this file"),
        ('[contexts]\nlab = "a"\n', r"contexts must be tables: \[contexts.NAME\]"),
        ('context = "lab"\n', "no context 'lab'"),
        ("context = 1\n", "context must be the name of a context"),
        ("context = \n", "config.toml:1: Invalid value"),
    ],
)
def test_a_wrong_context_is_one_line_that_names_file_and_setting(tmp_path: Path, text: str, reason: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ContextError, match=reason) as caught:
        read_contexts(path)
    message = str(caught.value)
    assert re.fullmatch(rf"{re.escape(str(path))}:\d: .*", message)
    assert "\n" not in message
    assert "secret" not in message


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(ContextError, match=r"^cannot read .*: Is a directory$"):
        read_contexts(tmp_path)
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(ContextError, match=r"config\.toml: "):
        read_contexts(path)
