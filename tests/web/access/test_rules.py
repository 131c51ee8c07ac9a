"""Rules of the web server: by user, group, class, agent, object and method; for messages by queue and topic."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.shelf import store_agent
from support.web import called, memory_application, web_options

from qmf.acl.reader import AclError
from qmf.bus import MemoryExchange
from qmf.protocol import ObjectId
from qmf.schema import ClassKey
from qmf.web import Scope
from qmf.web.access.rules import CalledObject, WebRules, WebRulesError
from qmf.web.scopes import Caller, Proof

SHELF = "/api/v1/agents/example.org:store:1/objects/org.example.store:shelf:a~2F1"
RULES = """group operators ann@QPID
acl allow operators access query schemapackage=org.example.store
acl allow operators access method name=add schemapackage=org.example.store schemaclass=shelf object=a/*
acl allow robot@token access method
acl deny all all
"""


def shelf(name: str = "a/1", class_name: str = "shelf") -> CalledObject:
    key = ClassKey("org.example.store", class_name)
    return CalledObject(key, ObjectId(f"org.example.store:{class_name}:{name}", "example.org:store:1"))


UNKNOWN = CalledObject(None, ObjectId("any", "other"))


def caller(name: str, proof: Proof = Proof.PASSWORD) -> Caller:
    return Caller(name=name, scopes=frozenset(Scope), proof=proof, address="127.0.0.1")


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "rules"
    path.write_text(RULES)
    return path


def test_who_may_call_what(file: Path) -> None:
    rules = WebRules(file)
    assert rules.refusal(caller("ann"), "add", shelf()) == ""
    assert rules.refusal(caller("ann"), "clear", shelf()) == (
        "user ann may not call clear of org.example.store:shelf: the rules deny it"
    )
    assert rules.refusal(caller("ann"), "add", shelf(class_name="box"))
    assert rules.refusal(caller("ann"), "add", shelf("b/1"))
    assert rules.refusal(caller("ann"), "_set_properties", shelf())
    assert rules.refusal(caller("bob"), "add", shelf())
    assert rules.refusal(caller("robot", Proof.TOKEN), "clear", UNKNOWN) == ""
    assert rules.refusal(caller("robot"), "clear", UNKNOWN)  # a user of the same name
    assert rules.refusal(caller("", Proof.NOTHING), "add", shelf())


def test_without_a_file_scopes_alone_decide() -> None:
    assert WebRules(None).refusal(caller("bob"), "add", shelf()) == ""


def test_the_file_is_read_again(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    rules = WebRules(file)
    file.write_text("acl allow all all\n")
    assert rules.refusal(caller("bob"), "add", shelf()) == ""
    file.write_text("acl\n")
    assert rules.refusal(caller("bob"), "add", shelf()) == ""
    assert "the rules stay as they were" in caplog.text
    file.unlink()
    assert rules.refusal(caller("bob"), "add", shelf()) == ""


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    with pytest.raises(WebRulesError, match="No such file"):
        WebRules(tmp_path / "none")
    (tmp_path / "wrong").write_text("acl allow\n")
    with pytest.raises(AclError, match="Insufficient tokens"):
        WebRules(tmp_path / "wrong")


async def test_calls_and_changes(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    exchange = MemoryExchange()
    options = web_options(users={"ann": "a", "bob": "b"}, rules=file)
    async with store_agent(exchange) as agent, called(memory_application(exchange, options)) as http:
        agent.on("Shelf", "add", lambda _, **_inputs: {"total": 7})
        for user, method, status in (("ann", "add", 200), ("ann", "clear", 403), ("bob", "add", 404)):
            answer = await http.post(
                f"{SHELF}/methods/{method}", json={"count": 3} if method == "add" else {}, auth=(user, user[0])
            )
            assert answer.status_code == status, answer.text
            if status == 403:
                assert "the rules deny it" in answer.json()["detail"]
        answer = await http.patch(f"{SHELF}/properties", json={"label": "x"}, auth=("ann", "a"))
        assert answer.status_code == 403
    assert "the rules deny it" in caplog.text


def test_messages(file: Path) -> None:
    file.write_text(
        "acl allow ann@QPID publish exchange name=amq.default routingkey=${user}.#\n"
        "acl allow ann@QPID consume queue name=${user}.*\n"
        "acl allow ann@QPID bind exchange name=news\nacl deny all all\n"
    )
    rules, ann = WebRules(file), caller("ann")
    assert (rules.may_send(ann, "ann.jobs", topic=False), rules.may_send(ann, "jobs", topic=False)) == (True, False)
    assert (rules.may_send(ann, "ann.jobs", topic=True), rules.may_send(ann, "news", topic=True)) == (False, False)
    assert (rules.may_consume(ann, "ann.x", topic=False), rules.may_consume(ann, "x", topic=False)) == (True, False)
    assert (rules.may_consume(ann, "news", topic=True), rules.may_consume(ann, "ann.x", topic=True)) == (True, False)
    assert WebRules(None).may_send(ann, "any", topic=True)
