"""The command `qmf-web`: what it refuses, tokens, and the whole program once."""

from __future__ import annotations

import json
import ssl
import sys
from pathlib import Path

import httpx
import pytest
import trustme
from support.processes import Process
from support.web import web_options

from qmf.broker import EmbeddedBroker
from qmf.connecting import BrokerTarget
from qmf.connecting.tls import TlsError
from qmf.users.verifiers import hash_password
from qmf.web import Scope, create_application
from qmf.web.access.tokens import read_tokens
from qmf.web.cli import main
from qmf.web.server import ServerTls, WebServer, listen

#: The command of this checkout.
COMMAND = [sys.executable, "-c", "import sys; from qmf import _entry; sys.exit(_entry.web())"]

OIDC = ["--oidc", "https://id", "--oidc-client", "web"]


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users"
    path.write_text(f"ann:{hash_password('secret')}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--host", "0.0.0.0"], "refused: listening on 0.0.0.0 without --users FILE"),
        (["--host", "0.0.0.0", "--users", "users"], "and data could be read on the way; --allow-unprotected"),
        (["--host", "::"], "refused: listening on :: without --users FILE"),
        (["--trusted-proxy", "127.0.0.1"], "refused: serving a proxy without --users FILE"),
        (["--tls-key", "key.pem"], "--tls-key needs --tls-cert"),
        (["--tls-cert", "nosuch.pem"], "nosuch.pem"),
        (["--users", "nosuch"], "nosuch: No such file"),
        (["--tokens", "nosuch"], "nosuch: No such file"),
        (["--tokens", "users"], "users:1: expected name:scopes:end:digest"),
        (["--grant", "ann=read"], "no such user in the file of --users"),
        (["--users", "users", "--grant", "bob=read"], "no such user in the file of --users"),
        (["--users", "users", "--grant", "ann"], "expected USER=SCOPES"),
        (["--users", "users", "--grant", "ann=fly"], "scopes are read, call, set, messages or all"),
        (["--oidc-scopes", "read"], "--oidc-scopes needs --oidc URL"),
        (["--oidc", "https://id"], "--oidc needs --oidc-client NAME"),
        (["--oidc", "https://id", "--oidc-client", "web"], "--oidc needs --oidc-scopes SCOPES or --oidc-grant"),
        ([*OIDC, "--oidc-scopes", "fly"], "--oidc-scopes: scopes are read, call"),
        ([*OIDC, "--oidc-grant", "a=read"], "--oidc-grant needs --oidc-groups-claim CLAIM"),
        ([*OIDC, "--oidc-groups-claim", "groups", "--oidc-grant", "a"], "--oidc-grant a: expected GROUP=SCOPES"),
        ([*OIDC, "--oidc-groups-claim", "groups", "--oidc-grant", "a=fly"], "--oidc-grant a=fly: scopes are read"),
        ([*OIDC, "--oidc-scopes", "read", "--oidc-secret-file", "nosuch"], "cannot read the secret file nosuch"),
        (
            ["--oidc", "http://id", *OIDC[2:], "--oidc-scopes", "read"],
            "http://id: an identity provider has an https URL",
        ),
        (["--new-token", "a:b"], "cannot be the name of a token"),
        (["--new-token", "a", "--scopes", ""], "scopes are read"),
        (["--new-token", "a", "--days", "99999999"], "--days 99999999: too many"),
        (["--audit", "nosuch/file"], "--audit nosuch/file: No such file or directory"),
    ],
)
def test_wrong_options_are_told_in_one_line(
    arguments: list[str], text: str, users: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(users.parent)
    # A broker that nobody listens at: nothing is ever served.
    assert main(["--port", "0", "-b", "amqp://127.0.0.1:1", *arguments]) == 2
    err = capsys.readouterr().err
    assert err.startswith("qmf-web: ")
    assert text in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "x"],
        ["--port", "65536"],
        ["--max-body", "0"],
        ["--timeout", "0"],
        ["--max-connections", "0"],
        ["--header-time", "0"],
        ["--trusted-proxy", "proxy.example"],
        ["--trusted-proxy", "10.0.0.1/8"],
    ],
)
def test_wrong_numbers(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert "is not a" in capsys.readouterr().err


def test_a_new_token(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--new-token", "ci", "--scopes", "read,call", "--days", "30"]) == 0
    secret, line = (text.partition(": ")[2] for text in capsys.readouterr().out.splitlines())
    path = tmp_path / "tokens"
    path.write_text(line, encoding="utf-8")
    (token,) = read_tokens(path).values()
    assert (token.name, token.scopes) == ("ci", frozenset({Scope.READ, Scope.CALL}))
    assert token.end is not None
    assert secret not in line


def test_an_address_that_is_taken(capsys: pytest.CaptureFixture[str]) -> None:
    listening = listen("127.0.0.1", 0)
    try:
        port = listening.getsockname()[1]
        assert main(["--port", str(port), "-b", "amqp://127.0.0.1:1"]) == 2
        assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in capsys.readouterr().err
    finally:
        listening.close()


def test_a_broker_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--port", "0", "-b", "amqp://127.0.0.1:1"]) == 2
    assert capsys.readouterr().err.startswith("qmf-web: cannot connect to amqp://127.0.0.1:1")


async def test_tls(tmp_path: Path) -> None:
    authority = trustme.CA()
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued = authority.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    tls = ServerTls(cert=cert, key=key)
    tls.check()
    with pytest.raises(TlsError):
        ServerTls(cert=key).check()
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with EmbeddedBroker() as broker:
        options = web_options(target=BrokerTarget.of(broker.url), users={"ann": "secret"}, tls=True)
        app = create_application(options, pages=False)
        async with (
            WebServer(app, listen("127.0.0.1", 0), tls=tls) as server,
            httpx.AsyncClient(base_url=server.url, verify=context, timeout=30) as client,
        ):
            assert server.url.startswith("https://127.0.0.1:")
            answer = await client.get("/api/v1", auth=("ann", "secret"))
            assert answer.json()["url"] == broker.url
            assert "strict-transport-security" in answer.headers


@pytest.mark.slow
def test_the_program(tmp_path: Path, users: Path) -> None:
    audit = tmp_path / "audit.log"
    process = Process(*COMMAND, "--port", "0", "--users", str(users), "--audit", str(audit), "--interval", "1")
    try:
        line = process.wait_for("Open http")
        assert line.startswith("Serving an embedded broker at amqp://127.0.0.1:")
        with httpx.Client(base_url=line.split()[-1], timeout=30, auth=("ann", "secret")) as client:
            assert client.get("/healthz").text == "ok\n"
            agents = client.get("/api/v1/agents").json()["agents"]
            host = next(agent for agent in agents if agent["product"] == "host")
            (found,) = client.get("/api/v1/objects?class=agent&package=qmf.host").json()["objects"]
            assert found["agent"] == host["name"]
            echo = client.post(f"{found['href']}/methods/echo", json={"sequence": 7, "body": "hello"})
            assert echo.json() == {"sequence": 7, "body": "hello"}
            while "qmf_web_scrape_collecting_classes 0.0" not in (scraped := client.get("/metrics").text):
                pass
            assert "# TYPE qmf_host_memory_used_bytes gauge" in scraped
            assert client.get("/api/v1", auth=("ann", "wrong")).status_code == 401
    finally:
        code = process.end()
    assert code == 0
    records = [json.loads(text[text.index("{") :]) for text in audit.read_text(encoding="utf-8").splitlines()]
    assert [(record["action"], record["user"], record["by"], record["result"]) for record in records] == [
        ("call", "ann", "password", "done"),
        ("login", "ann", "refused", "refused"),
    ]
    assert records[0]["arguments"] == records[0]["outputs"] == {"sequence": 7, "body": "hello"}
    assert records[0]["duration"] > 0
