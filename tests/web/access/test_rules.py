"""Rules about methods: by user, group, class and method."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.shelf import store_agent
from support.web import called, memory_application, web_options

from qmf.acl.reader import AclError
from qmf.bus import MemoryExchange
from qmf.schema import ClassKey
from qmf.web import Scope
from qmf.web.access.caller import Caller, Proof
from qmf.web.access.rules import MethodRules, WebRulesError

SHELF = "/api/v1/agents/example.org:store:1/objects/org.example.store:shelf:a~2F1"
RULES = """group operators ann@QPID
acl allow operators access method name=add schemapackage=org.example.store schemaclass=shelf
acl allow robot@token access method
acl deny all all
"""
KEY = ClassKey("org.example.store", "shelf")


def caller(name: str, proof: Proof = Proof.PASSWORD) -> Caller:
    return Caller(name=name, scopes=frozenset(Scope), proof=proof, address="127.0.0.1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules"
    path.write_text(RULES)
    return path


def test_who_may_call_what(file: Path) -> None:
    rules = MethodRules(file)
    assert rules.refusal(caller("ann"), "add", KEY) == ""
    assert rules.refusal(caller("ann"), "clear", KEY) == (
        "user ann may not call clear of org.example.store:shelf: the rules deny it"
    )
    assert rules.refusal(caller("ann"), "add", ClassKey("org.example.store", "box"))
    assert rules.refusal(caller("ann"), "_set_properties", KEY)
    assert rules.refusal(caller("bob"), "add", KEY)
    assert rules.refusal(caller("robot", Proof.TOKEN), "clear", None) == ""
    assert rules.refusal(caller("robot"), "clear", None)  # a user of the same name
    assert rules.refusal(caller("", Proof.NOTHING), "add", KEY)


def test_without_a_file_scopes_alone_decide() -> None:
    assert MethodRules(None).refusal(caller("bob"), "add", KEY) == ""


def test_the_file_is_read_again(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    rules = MethodRules(file)
    file.write_text("acl allow all all\n")
    assert rules.refusal(caller("bob"), "add", KEY) == ""
    file.write_text("acl\n")
    assert rules.refusal(caller("bob"), "add", KEY) == ""
    assert "the rules stay as they were" in caplog.text
    file.unlink()
    assert rules.refusal(caller("bob"), "add", KEY) == ""


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(WebRulesError, match="No such file"):
        MethodRules(tmp_path / "none")
    (tmp_path / "wrong").write_text("acl allow\n")
    with pytest.raises(AclError, match="Insufficient tokens"):
        MethodRules(tmp_path / "wrong")


async def test_calls_and_changes(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    exchange = MemoryExchange()
    options = web_options(users={"ann": "a", "bob": "b"}, rules=file)
    async with store_agent(exchange) as agent, called(memory_application(exchange, options)) as http:
        agent.on("Shelf", "add", lambda _, **_inputs: {"total": 7})
        for user, method, status in (("ann", "add", 200), ("ann", "clear", 403), ("bob", "add", 403)):
            answer = await http.post(
                f"{SHELF}/methods/{method}", json={"count": 3} if method == "add" else {}, auth=(user, user[0])
            )
            assert answer.status_code == status, answer.text
        assert "the rules deny it" in answer.json()["detail"]
        answer = await http.patch(f"{SHELF}/properties", json={"label": "x"}, auth=("ann", "a"))
        assert answer.status_code == 403
    assert "the rules deny it" in caplog.text
