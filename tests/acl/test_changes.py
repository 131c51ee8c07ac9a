"""What would have to change, and what a change does."""

from __future__ import annotations

from qmf.acl.changes import OTHER_USER, differences, permission
from qmf.acl.reader import read
from qmf.acl.rules import Lookup

OLD = (
    "acl allow ann@QPID create queue name=a.* maxqueuecount=10\n"
    "acl deny bob@QPID purge queue\n"
    "acl allow all publish exchange routingkey=news.#\n"
    "acl deny all all\n"
)


def changed(before: str, after: str) -> set[tuple[str, bool, str, str]]:
    found = differences(read(OLD, "old"), read(OLD.replace(before, after), "new"))
    return {
        (item.lookup.user, item.gained, f"{item.lookup.action} {item.lookup.object_type}", str(dict(item.conditions())))
        for item in found
    }


def test_no_change() -> None:
    assert changed("", "") == set()


def test_who_gains_and_loses() -> None:
    assert changed("deny bob@QPID purge", "allow bob@QPID purge") == {("bob@QPID", True, "purge queue", "{}")}
    assert changed("acl allow all publish", "acl allow ann@QPID publish") == {
        (user, False, "publish exchange", "{'routingkey': 'news.x'}") for user in ("bob@QPID", OTHER_USER)
    }


def test_changed_limits_and_names() -> None:
    assert changed("maxqueuecount=10", "maxqueuecount=20") == {
        ("ann@QPID", True, "create queue", "{'name': 'a.x', 'maxqueuecount': '20'}")
    }
    assert changed("name=a.*", "name=b.*") == {
        ("ann@QPID", False, "create queue", "{'name': 'a.x', 'maxqueuecount': '10'}"),
        ("ann@QPID", True, "create queue", "{'name': 'b.x', 'maxqueuecount': '10'}"),
    }


def test_names_with_the_user() -> None:
    old, new = (f"acl allow {who} consume queue name=${{user}}.*" for who in ("all", "ann@QPID"))
    found = list(differences(read(f"{old}\n", "old"), read(f"{new}\n", "new")))
    assert [(item.lookup.user, item.lookup.name) for item in found] == [(OTHER_USER, "anybody-else.x")]


def test_connections() -> None:
    after = "acl deny all create connection host=10.0.0.1\nacl deny all all"
    assert changed("acl deny all all", after) == {
        (user, False, "create connection", "{'host': '10.0.0.1'}") for user in ("ann@QPID", "bob@QPID", OTHER_USER)
    }


def test_what_would_allow_it() -> None:
    rules = read(OLD, "old")

    def change(user: str, action: str, kind: str, name: str, **properties: str) -> str:
        return permission(rules, Lookup(user, action, kind, name, properties))

    assert change("bob@QPID", "purge", "queue", "q") == "insert before line 2: acl allow bob@QPID purge queue name=q"
    assert change("ann@QPID", "create", "queue", "a.b", maxqueuecount="12") == (
        "change line 1: queuemaxcountupperlimit=12; or insert before it: acl allow ann@QPID create queue name=a.b"
    )
    assert permission(read("", "empty"), Lookup("a@Q", "update", "broker")) == "add: acl allow a@Q update broker"
