"""The broker's questions in the words of the file."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from qmf.acl.reader import read
from qmf.acl.rules import Lookup
from qmf.acl.ruleset import Decision
from qmf.broker.access.policy import AclPolicy, user_id
from qmf.broker.operations.policy import Action, ObjectType, Operation
from qmf.broker.operations.principal import BROKER, LOCAL, Principal

ANN = Principal("ann", "127.0.0.1:5", "AMQP 1.0")


@attrs.define
class Reports:
    """An `AccessState` without quotas."""

    lookups: list[tuple[Lookup, Decision]] = attrs.field(factory=list)

    def excess(self, lookup: Lookup) -> str:
        return "one too many" if lookup.name == "last" else ""

    def report(self, lookup: Lookup, decision: Decision) -> None:
        self.lookups.append((lookup, decision))


def policy(text: str) -> tuple[AclPolicy, Reports]:
    reports = Reports()
    return AclPolicy(read(text, "users.acl"), "QPID", reports), reports


def asked(operation: Operation) -> Lookup:
    found, reports = policy("")
    found.refusal(ANN, operation)
    return reports.lookups[0][0]


def test_users_have_a_realm() -> None:
    assert [user_id(user, "QPID") for user in ("ann", "ann@home", "")] == ["ann@QPID", "ann@home", "anonymous"]


@pytest.mark.parametrize(
    ("given", "known"),
    [
        ({"durable": True, "exclusive": False}, {"durable": "true", "exclusive": "false"}),
        ({"maxqueuesize": 0, "maxqueuecount": 0}, {"maxqueuesize": "18446744073709551615"}),
        ({"maxqueuesize": 5, "maxqueuecount": 6}, {"maxqueuesize": "5", "maxqueuecount": "6"}),
        ({"policytype": "flow-to-disk"}, {"policytype": "reject"}),
        ({"policytype": "ring"}, {"policytype": "ring"}),
        ({"alternate": None}, {"alternate": ""}),
        ({"alternate": "x"}, {"alternate": "x"}),
    ],
)
def test_properties_are_text(given: dict[str, Any], known: dict[str, str]) -> None:
    lookup = asked(Operation(Action.CREATE, ObjectType.QUEUE, "q", given))
    assert lookup == Lookup("ann@QPID", "create", "queue", "q", known)


def test_an_alternate_exchange_that_is_not_there_is_unknown_where_a_queue_is_accessed() -> None:
    assert asked(Operation(Action.ACCESS, ObjectType.QUEUE, "q", {"alternate": None})).properties == {}


def test_browsing_is_consuming() -> None:
    assert asked(Operation(Action.BROWSE, ObjectType.QUEUE, "q")).action == "consume"


@pytest.mark.parametrize("principal", [BROKER, Principal("ann", "management", LOCAL)])
def test_the_broker_s_own_process_may_do_everything(principal: Principal) -> None:
    found, reports = policy("acl deny all all")
    assert found.refusal(principal, Operation(Action.DELETE, ObjectType.QUEUE, "q")) == ""
    assert reports.lookups == []


def test_what_files_have_no_word_for_is_asked_for_as_a_method() -> None:
    found, _ = policy("acl deny all all")
    assert found.refusal(ANN, Operation(Action.CREATE, ObjectType.TOPIC, "t")) == ""


def test_refusals() -> None:
    found, _ = policy("acl allow all create queue maxqueuecount=5\nacl allow all purge queue")
    create = Operation(Action.CREATE, ObjectType.QUEUE, "q", {"maxqueuecount": 6})
    assert found.refusal(ANN, create) == "the ACL denies it (limit queuemaxcountupperlimit)"
    assert found.refusal(ANN, Operation(Action.DELETE, ObjectType.QUEUE, "q")) == "the ACL denies it"
    assert found.refusal(ANN, Operation(Action.PURGE, ObjectType.QUEUE, "last")) == "one too many"


def publishing(exchange: str, key: str | None) -> Operation:
    return Operation(Action.PUBLISH, ObjectType.EXCHANGE, exchange, {} if key is None else {"routingkey": key})


def test_without_rules_about_publishing_exchanges_are_open_and_queues_are_not() -> None:
    found, _ = policy("acl deny all all")
    assert not found.has_key_rules
    assert found.refusal(ANN, publishing("amq.topic", None)) == ""
    assert found.refusal(ANN, publishing("", "q")) == "the ACL denies it"


def test_rules_about_publishing() -> None:
    found, reports = policy("acl allow all publish exchange name=x routingkey=a.#\nacl deny-log all publish exchange")
    assert found.has_key_rules
    for _ in range(2):  # the second time from what is kept
        assert found.refusal(ANN, publishing("x", "a.b")) == ""
        assert found.refusal(ANN, publishing("x", "b")) == "the ACL denies it"
    assert [(lookup.name, str(decision.outcome.value)) for lookup, decision in reports.lookups] == [
        ("x", "deny-log")
    ] * 2
