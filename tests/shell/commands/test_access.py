"""`why` and `may`: what the rules of a broker have denied, and allow."""

from __future__ import annotations

from qmf_shell.session.context import Context
from shell.fakes import ALPHA, NOON, FakeBackend
from shell.line_runner import failure, printed

from qmf.models.security.schema import ACCESS
from qmf.views.objects import ObjectIdentity, ObjectKey, ObjectView

DENIAL = {
    "userId": "bob@QPID",
    "action": "publish",
    "objectType": "exchange",
    "objectName": "amq.topic",
    "properties": {"routingkey": "news"},
    "time": NOON,
    "count": 3,
    "passedOver": ["line 2: acl allow bob@QPID publish exchange name=x: name: 'amq.topic' is not 'x'"],
    "decision": "deny: line 9: acl deny all all",
    "change": "insert before line 9: acl allow bob@QPID publish exchange name=amq.topic",
}


def with_rules(backend: FakeBackend) -> None:
    identity = ObjectIdentity(ObjectKey("qmf.security:access:rules", ALPHA), ACCESS.key, "rules")
    backend.keys = [ACCESS.key]
    backend.records = [ObjectView(identity, ACCESS, {"name": "rules"}, updated=NOON, created=NOON)]


def test_why(context: Context, backend: FakeBackend) -> None:
    with_rules(backend)
    backend.answer = {"denials": [DENIAL]}
    lines = printed(context, "why -n 5 bob")
    assert backend.calls == [("qmf.security:access:rules", "explainDenials", {"userId": "bob", "count": 5})]
    assert lines[0] == f"bob@QPID at {ALPHA}"
    text = "\n".join(lines)
    assert "publish exchange amq.topic routingkey=news" in text
    assert "deny: line 9: acl deny all all" in text
    assert "name: 'amq.topic' is not 'x'" in text
    assert "insert before line 9: acl allow bob@QPID publish exchange name=amq.topic" in text


def test_nothing_was_denied(context: Context, backend: FakeBackend) -> None:
    with_rules(backend)
    backend.answer = {"denials": []}
    assert printed(context, "why") == ["Nothing was denied lately."]
    assert backend.calls[0][2] == {"userId": "", "count": 1}


def test_may(context: Context, backend: FakeBackend) -> None:
    with_rules(backend)
    backend.answer = {"rules": ["line 2: acl allow bob@QPID access", "line 9: acl deny all all"]}
    lines = printed(context, "may bob")
    assert lines[0] == "2 rules; the first one that matches decides"
    assert [line for line in lines if "acl allow bob@QPID access" in line]


def test_without_rules(context: Context) -> None:
    assert "no broker here explains its rules" in failure(context, "why")
