"""What may be read by rules: invented rules, of which every answer about many objects fits those about each."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from qmf.acl.reader import read
from qmf.acl.rules import Lookup
from qmf.acl.words import WEB
from qmf.protocol import ObjectId
from qmf.schema import ClassKey
from qmf.web.access.read_rights import ReadRights, local_name

CLASSES = [ClassKey("p", "queue"), ClassKey("p", "exchange"), ClassKey("q", "queue")]
AGENTS = ("one", "two")
NAMES = ("", "ann", "ann.x", "bob", "x")


def rights(text: str, user: str = "ann@QPID", *groups: str) -> ReadRights:
    return ReadRights(read(text, "rules", vocabulary=WEB), user, frozenset(groups))


def invented(chance: Random) -> str:
    """Rules about reading, some of which depend on agent, class or name."""
    values = {
        "schemapackage": "pq",
        "schemaclass": ["queue", "exchange"],
        "agent": AGENTS,
        "name": ["ann*", "bob", "${user}*"],
    }
    lines = []
    for _ in range(chance.randrange(6)):
        chosen = chance.sample([*values], chance.randrange(4))
        properties = "".join(f" {name}={chance.choice(values[name])}" for name in chosen)
        lines.append(
            f"acl {chance.choice(['allow', 'deny'])} {chance.choice(['ann@QPID', 'all'])} access query{properties}"
        )
    return "\n".join([*lines, f"acl {chance.choice(['allow', 'deny'])} all all", ""])


def test_answers_about_many_fit_those_about_each() -> None:
    for seed in range(300):
        text = invented(Random(seed))
        found = rights(text)
        for key, agent in itertools.product(CLASSES, AGENTS):
            each = []
            for name in NAMES:
                sees = found.sees_object(key, ObjectId(f"{key.package}:{key.name}:{name}", agent), agent)
                properties = {"schemapackage": key.package, "schemaclass": key.name, "agent": agent}
                lookup = Lookup("ann@QPID", "access", "query", name, properties)
                assert sees is found.rules.decide(lookup).allows, text
                assert sees is found.sees_reference(ObjectId(f"{key.package}:{key.name}:{name}"), agent), text
                each.append(sees)
            # A class of which something may be read is there; where all is withheld, the class may be there.
            assert not any(each) or (found.sees_class(key, agent) and found.sees_class(key)), text
            assert found.sees_agent(agent, CLASSES) or not any(each), text
            assert all(each) or not found.everything, text


@pytest.mark.parametrize(
    ("text", "everything"),
    [
        ("acl allow all all", True),
        ("acl allow ann@QPID access\nacl deny all all", True),
        ("acl allow operators access query\nacl deny all all", True),
        ("acl deny bob@QPID access\nacl allow all all", True),
        ("acl allow ann@QPID access query name=x*\nacl allow all all", True),
        ("acl deny ann@QPID access query name=x\nacl allow all all", False),
        ("acl allow ann@QPID access method\nacl deny all all", False),
        ("", False),
    ],
)
def test_everything(text: str, everything: bool) -> None:
    assert rights(text, "ann@QPID", "operators").everything is everything


def test_events_that_name_what_is_withheld() -> None:
    found = rights(
        "acl deny all access query name=secret*\nacl allow all access query schemaclass=sale\nacl deny all all"
    )
    about = ObjectId("p:queue:x", "one")
    for name, object_id, arguments, sees in (
        ("sale", None, ["open", 3], True),
        ("sale", None, ["secret.1"], False),
        ("sale", None, [{"names": ["p:queue:secret.1"]}], False),
        ("sale", None, [ObjectId("p:queue:secret", "one")], False),
        ("sale", about, [], False),
        ("other", None, [], False),
    ):
        assert found.sees_event("p", name, "one", object_id, arguments) is sees, (name, arguments)


def test_names_of_objects() -> None:
    key = ClassKey("p", "Queue")
    assert local_name(key, "p:queue:a:b") == "a:b"
    assert local_name(key, "other") == "other"
    assert local_name(key, "q:queue:a") == "q:queue:a"
    assert local_name(None, "q:queue:a") == "a"
