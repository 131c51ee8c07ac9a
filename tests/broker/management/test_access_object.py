"""Denials are explained, and rules listed, to whom the rules allow it."""

from __future__ import annotations

from pathlib import Path

import pytest
from broker.access.test_control import USERS, control, session_of

from qmf.acl.rules import Lookup
from qmf.broker import Broker
from qmf.broker.access.denials import MAX_KEPT, DeniedRequests
from qmf.console.aio import Client
from qmf.messaging.exceptions import UnauthorizedAccess
from qmf.models.security import console as remote

RULES = """group staff bob@QPID
acl allow ann@QPID all
acl allow staff access
acl allow-log staff create queue name=bob.*
acl deny-log all all
"""


async def test_denials_and_rules(tmp_path: Path) -> None:
    access = control(tmp_path, RULES)
    async with (
        Broker(port=0, users=USERS, access=access, queues=["q"], management=3600.0) as broker,
        Client(f"amqp://ann:a@127.0.0.1:{broker.port}", settle=0.0) as client,
        session_of(broker, "bob") as session,
    ):
        for _ in range(2):
            with pytest.raises(UnauthorizedAccess):
                await session.receiver("q")
        await client.locate(settle=0.0)
        (managed,) = await client.objects(remote.Access)
        assert (managed.file, managed.denied) == (str(access.file), 2)
        assert (await managed.explainDenials("", 1)).denials == []  # ann's
        for user in ("bob", "bob@QPID", "all"):
            (found,) = (await managed.explainDenials(user, 5)).denials
            assert isinstance(found, dict)
            assert found["time"] > 0
            assert {name: found[name] for name in found if name != "time"} == {
                "userId": "bob@QPID",
                "action": "consume",
                "objectType": "queue",
                "objectName": "q",
                "properties": {},
                "count": 2,
                "decision": "deny-log: line 5: acl deny-log all all",
                "passedOver": [],
                "change": "insert before line 5: acl allow bob@QPID consume queue name=q",
            }
        assert (await managed.listRules("bob")).rules == [
            "line 3: acl allow staff access",
            "line 4: acl allow-log staff create queue name=bob.*",
            "line 5: acl deny-log all all",
        ]
        assert len((await managed.listRules("")).rules) == 2


def test_so_many_denials_are_kept() -> None:
    times = iter(range(10_000))
    denied = DeniedRequests(lambda: next(times))
    for number in range(MAX_KEPT + 10):
        denied.add(Lookup("bob@QPID", "consume", "queue", f"q{number}"))
    denied.add(Lookup("bob@QPID", "consume", "queue", "q50"))
    found = list(denied.latest("bob@QPID"))
    assert len(found) == MAX_KEPT
    assert [(one.lookup.name, one.count) for one in found[:2]] == [("q50", 2), (f"q{MAX_KEPT + 9}", 1)]
    assert list(denied.latest("ann@QPID")) == []
