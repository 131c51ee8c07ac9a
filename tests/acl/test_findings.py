"""What valid files may still do wrong."""

from __future__ import annotations

import pytest

from qmf.acl.findings import covers, findings
from qmf.acl.reader import read


def found(text: str) -> list[str]:
    return [f"{problem.line}: {problem.message}" for problem in findings(read(text, "users.acl"))]


def test_a_good_file_has_none() -> None:
    assert found("group g a@QPID\nacl allow g create queue name=a.*\nacl deny-log all all\n") == []


def test_rules_that_never_decide() -> None:
    # The example of the manual, chapter 9.3.1, the other way round.
    assert found("acl allow p@QPID create queue\nacl allow p@QPID create queue name=tmp\nacl deny all all") == [
        '2: the rule never decides: line 1, "p@QPID create queue", matches all of it before'
    ]


def test_groups_without_use_and_members() -> None:
    assert found("group a x@QPID\ngroup b \\\n# nobody\n \ngroup c a\nquota queues 1 c\nacl deny all all") == [
        '2: the group "b" has no members',
        '2: no rule, quota or group names the group "b"',
    ]


def test_the_default() -> None:
    assert found("acl allow all all") == ["1: everything that no rule matches is allowed"]
    assert found("acl deny all purge queue\n") == ["1: no rule for everything: what no rule matches is denied"]


@pytest.mark.parametrize(
    ("first", "second", "result"),
    [
        ("all create queue", "a@Q create queue name=x", True),
        ("a@Q create queue", "all create queue", False),
        ("all all", "a@Q purge queue", True),
        ("all create queue name=t*", "all create queue name=tmp", True),
        ("all create queue name=tmp*", "all create queue name=t*", False),
        ("all create queue maxqueuesize=1", "all create queue maxqueuesize=9", True),
        ("all create queue maxqueuesize=1", "all create queue", False),
        ("all publish exchange routingkey=#", "all publish exchange routingkey=a.b", True),
        ("all publish exchange routingkey=a.*", "all publish exchange routingkey=a.b", False),
    ],
)
def test_which_rules_match_all_of_another_one(first: str, second: str, result: bool) -> None:
    # Both before the default, which is no rule among the others.
    rules = read(f"acl deny {first}\nacl deny {second}\nacl deny all all", "users.acl").rules
    assert covers(*rules) is result
