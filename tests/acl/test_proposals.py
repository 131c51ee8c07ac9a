"""Rules are proposed from what clients did."""

from __future__ import annotations

from random import Random

import pytest
from acl.policies import lookups
from hypothesis import given
from hypothesis import strategies as st

from qmf.acl.proposals import propose
from qmf.acl.reader import read
from qmf.acl.rules import Lookup
from qmf.tools.acl.cases import parse_cases


def proposed(*cases: str) -> list[str]:
    text = "\n".join(f"allow {case}" for case in cases)
    lines = propose([case.lookup for case in parse_cases(text, "cases")]).splitlines()
    assert lines.pop() == "acl deny-log all all"
    return lines


@pytest.mark.parametrize(
    ("case", "rule"),
    [
        ("ann@Q consume queue name=orders", "acl allow ann@Q consume queue name=orders"),
        ("ann@Q consume queue name=ann.jobs", "acl allow ann@Q consume queue name=${user}.jobs"),
        ("ann@Q consume queue name=annual", "acl allow ann@Q consume queue name=annual"),
        ("ann@Q create queue name=ann_Q durable=true", "acl allow ann@Q create queue name=${userdomain}"),
        ("ann@Q create queue name=qmf-0f3a88d2-11aa-4711-9c2e-aa00ff3301ee", "acl allow ann@Q create queue name=qmf-*"),
        ("ann@Q create queue name=reply-20481", "acl allow ann@Q create queue name=reply-*"),
        ("ann@Q publish exchange name=", "acl allow ann@Q publish exchange name=amq.default"),
        (
            "ann@Q publish exchange name=amq.topic routingkey=news.uk",
            "acl allow ann@Q publish exchange name=amq.topic routingkey=news.uk",
        ),
        (
            "ann@Q bind exchange name=amq.topic queuename=ann.jobs routingkey=ann.news.123456.x",
            "acl allow ann@Q bind exchange name=amq.topic queuename=${user}.jobs routingkey=${user}.news.#",
        ),
        (
            "ann@Q access method name=purge schemapackage=p schemaclass=queue",
            "acl allow ann@Q access method name=purge schemaclass=queue",
        ),
    ],
)
def test_a_rule(case: str, rule: str) -> None:
    assert proposed(case) == [rule]


def test_connections_need_no_rule() -> None:
    assert proposed("ann@Q create connection host=127.0.0.1") == []


def test_users_who_do_the_same_are_a_group() -> None:
    cases = [
        f"{user}@Q {what}" for user in ("ann", "bob") for what in (f"consume queue name={user}.in", "access broker")
    ]
    assert proposed(*cases) == [
        "group clients-1 ann@Q bob@Q",
        "acl allow clients-1 access broker",
        "acl allow clients-1 consume queue name=${user}.in",
    ]


@pytest.mark.parametrize(
    ("keys", "rules"),
    [
        (["news.uk", "news.de"], ["news.de", "news.uk"]),
        ([f"news.{name}" for name in "abcdefgh"], ["news.#"]),
        ([f"{name}.x" for name in "abcdefgh"], ["#"]),
        ([*(f"news.{name}" for name in "abcdefg"), "alerts"], ["alerts", "news.#"]),
    ],
)
def test_many_keys_have_their_beginning_in_common(keys: list[str], rules: list[str]) -> None:
    found = proposed(*(f"z@Q publish exchange name=x routingkey={key}" for key in keys))
    assert found == [f"acl allow z@Q publish exchange name=x routingkey={key}" for key in rules]


def test_a_group_of_many_fits_into_lines() -> None:
    lines = proposed(*(f"user-with-a-long-name-{number}@EXAMPLE.ORG access broker" for number in range(100)))
    assert max(map(len, lines)) < 1024
    assert lines[-1] == "acl allow clients-1 access broker"


@given(seed=st.integers(0, 2**32))
def test_what_was_done_is_allowed(seed: int) -> None:
    # An exchange of this name cannot exist, and no rule could name it.
    done = [one for one in lookups(Random(seed), 20) if one.object_type != "connection" and one.name != "amq.default"]
    rules = read(propose(done), "proposed.acl")
    assert [lookup for lookup in done if not rules.decide(lookup).allows] == []


def test_nothing_else_is_allowed() -> None:
    rules = read(propose([Lookup("ann@Q", "consume", "queue", "ann.x")]), "proposed.acl")
    assert not rules.decide(Lookup("ann@Q", "consume", "queue", "bob.x")).allows
    assert not rules.decide(Lookup("bob@Q", "consume", "queue", "bob.x")).allows
