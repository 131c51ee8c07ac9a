"""The options of all commands that connect, and what they mean together."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from support.processes import command, running
from support.waiting import wait_until

from qmf.bus import UrlError
from qmf.connecting import (
    ConnectionContext,
    Connections,
    Contexts,
    OptionError,
    PasswordError,
    TlsError,
    TlsFiles,
    add_connection_options,
    read_connections,
)
from qmf.errors import NotFoundError

LAB = ConnectionContext(name="lab", urls=("amqp://mq1", "amqp://mq2"), user="ann", domain="lab", lake="/lake")
ONE = ConnectionContext(name="one", urls=("mq3",))
CONTEXTS = Contexts({"lab": LAB, "one": ONE})


def read(
    *arguments: str,
    contexts: Contexts = CONTEXTS,
    environ: Mapping[str, str] | None = None,
    default: str | None = "localhost",
    brokers: tuple[str, ...] = (),
) -> Connections:
    parser = argparse.ArgumentParser()
    add_connection_options(parser, broker="the broker", several=True)
    return read_connections(
        parser.parse_args(arguments),
        prog="prog",
        default=default,
        brokers=brokers,
        contexts=contexts,
        environ=environ or {},
        ask=lambda _: "typed",
    )


def urls(connections: Connections) -> list[str]:
    return [str(target) for target in connections.targets]


def test_what_names_the_brokers() -> None:
    assert urls(read()) == ["amqp://localhost:5672"]
    assert read(default=None) == Connections()
    assert urls(read("-b", "mq7", "-b", "amqps://mq8", "-b", "mq7")) == ["amqp://mq7:5672", "amqps://mq8:5671"]
    assert urls(read(brokers=("mq9",))) == ["amqp://mq9:5672"]
    named = read("--context", "lab")
    assert urls(named) == ["amqp://ann@mq1:5672", "amqp://ann@mq2:5672"]
    assert named.context is LAB
    assert {target.domain for target in named.targets} == {"lab"}
    assert urls(read(environ={"QMF_CONTEXT": "one"})) == ["amqp://mq3:5672"]
    assert urls(read("-b", "mq7", environ={"QMF_CONTEXT": "one"})) == ["amqp://mq7:5672"]
    usual = Contexts(CONTEXTS.by_name, "one")
    assert urls(read(contexts=usual)) == ["amqp://mq3:5672"]
    assert urls(read(contexts=usual, brokers=("mq9",))) == ["amqp://mq9:5672"]
    assert urls(read("-b", "mq7", contexts=usual)) == ["amqp://mq7:5672"]


def test_options_override_the_context() -> None:
    found = read("--context", "lab", "--user", "bob", "--domain", "other")
    assert urls(found) == ["amqp://bob@mq1:5672", "amqp://bob@mq2:5672"]
    assert [target.domain for target in found.targets] == ["other", "other"]


def test_one_broker_where_a_command_wants_one() -> None:
    assert str(read("--context", "one").target) == "amqp://mq3:5672"
    with pytest.raises(OptionError, match=r"^context lab has 2 brokers: name one broker with -b$"):
        _ = read("--context", "lab").target


def test_passwords_are_found_and_not_shown(capsys: pytest.CaptureFixture[str]) -> None:
    (target,) = read("-b", "amqp://mq1", "--user", "ann", environ={"QMF_PASSWORD": "secret"}).targets
    assert (target.url.username, target.url.password) == ("ann", "secret")
    assert "secret" not in f"{target}{target!r}{target.make_bus().url}"
    (target,) = read("-b", "ann@mq1").targets
    assert target.url.password == "typed"
    (target,) = read("-b", "ann:secret@mq1", environ={"QMF_PASSWORD": "other"}).targets
    assert target.url.password == "secret"
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("prog: warning: a password in a URL on the command line can be read by other users")
    assert err.count("\n") == 1
    assert "secret" not in err


@pytest.mark.parametrize(
    ("arguments", "error", "reason"),
    [
        (["-b", "mq1", "--context", "lab"], OptionError, "--context and a URL of a broker: give one of them"),
        (["--context", "lib"], NotFoundError, r"no context 'lib'; did you mean lab\?"),
        (["-b", "ann@mq1", "--user", "bob"], OptionError, "two users: 'ann' in the URL, and 'bob'"),
        (["-b", "mq1", "--ca", "x.pem"], OptionError, "--ca: only for TLS; write amqps://"),
        (["-b", "mq1", "--insecure"], OptionError, "--insecure: only for TLS"),
        (["-b", "amqps://mq1", "--key", "x.pem"], TlsError, "--key needs --cert"),
        (["-b", "amqps://mq1", "--ca", "/none.pem"], TlsError, "cannot read the CA file /none.pem: no such file"),
        (["-b", "mq1:secret"], UrlError, "port 'secret' is not a number"),
    ],
)
def test_what_does_not_fit(arguments: list[str], error: type[Exception], reason: str) -> None:
    with pytest.raises(error, match=reason):
        read(*arguments)


def test_options_without_a_broker() -> None:
    with pytest.raises(OptionError, match=r"^--ca: name a broker as well$"):
        read("--ca", "x.pem", default=None)
    with pytest.raises(OptionError, match=r"^--user: name a broker as well$"):
        read("--user", "ann", default=None)


def test_a_certificate_takes_its_own_key() -> None:
    files = TlsFiles(ca=Path("ca"), cert=Path("cert"), key=Path("key"))
    context = ConnectionContext(name="tls", urls=("amqps://mq1",), tls=files)
    with pytest.raises(TlsError, match="cannot read the CA file ca"):
        read("--context", "tls", contexts=Contexts({"tls": context}))
    with pytest.raises(TlsError, match="cannot read the CA file other"):
        read("--context", "tls", "--ca", "other", contexts=Contexts({"tls": context}))


def test_insecure_warns(capsys: pytest.CaptureFixture[str]) -> None:
    (target,) = read("-b", "amqps://mq1", "--insecure").targets
    assert target.tls.insecure
    assert capsys.readouterr().err == "prog: warning: the identity of the broker is not checked (--insecure)\n"


@pytest.mark.slow
@pytest.mark.skipif(not os.access("/proc/self/mem", os.W_OK), reason="only Linux lets a process change its arguments")
def test_a_password_in_a_url_leaves_the_list_of_processes() -> None:
    # Nothing listens on port 1: the command waits.
    url = "amqp://ann:very-secret@127.0.0.1:1"
    # With its interpreter, so that it is no fork, whose arguments are those of another process.
    with running(sys.executable, command("qmf-printevents"), "--wait", url) as process:
        arguments = Path(f"/proc/{process.popen.pid}/cmdline")
        hidden = b"amqp://ann:***********@127.0.0.1:1"
        wait_until(lambda: hidden in arguments.read_bytes(), "arguments without a password")
        assert b"very-secret" not in arguments.read_bytes()
        process.wait_for("can be read by other users")
        process.wait_for("brokerDisconnected")
    assert not any("very-secret" in line for line in process.lines)


def test_a_token_in_place_of_a_password(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    found = read("-b", "ann@mq1", "-b", "mq2", "--token-file", str(file)).targets
    assert [str(target) for target in found] == ["amqp://ann@mq1:5672", "amqp://mq2:5672"]
    assert f"other users can read the token file {file}" in capsys.readouterr().err
    file.chmod(0o600)
    token = read("-b", "mq1", "--token-file", str(file)).target.token
    assert token is not None
    file.write_text("two\n")  # whoever gets tokens replaces the file
    assert token() == "two"
    assert capsys.readouterr().err == ""
    context = Contexts({"lab": ConnectionContext(name="lab", urls=("mq1",), token_file=file)})
    assert read("--context", "lab", contexts=context).target.token == token


def test_a_token_file_that_cannot_be_used(tmp_path: Path) -> None:
    file = tmp_path / "token"
    with pytest.raises(PasswordError, match=f"cannot read the token file {file}: no such file"):
        read("-b", "mq1", "--token-file", str(file))
    file.write_text("\n")
    with pytest.raises(PasswordError, match=f"the first line of the token file {file} is empty"):
        read("-b", "mq1", "--token-file", str(file))
    with pytest.raises(OptionError, match="--token-file: name a broker as well"):
        read("--token-file", str(file), default=None)
