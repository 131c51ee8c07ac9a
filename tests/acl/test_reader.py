"""Reading files of access control: the words of qpidd, all errors at once, warnings for what has no effect."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.acl.reader import MAX_LINE, AclError, read
from qmf.acl.rules import Lookup
from qmf.acl.words import RuleOutcome
from qmf.errors import SchemaProblem

#: Chapter 9.1.3 of the broker's manual.
MANUAL = """
# Some groups
group admin ted@QPID martin@QPID
group user-consume martin@QPID ted@QPID
group group2 kim@QPID user-consume rob@QPID
group publisher group2 \\
    tom@QPID andrew@QPID debbie@QPID
# Some rules
acl allow carlt@QPID create exchange name=carl.*
acl deny rob@QPID create queue
acl allow guest@QPID bind exchange name=amq.topic routingkey=stocks.ibm.# owner=self
acl allow user-consume create queue name=tmp.*
acl allow publisher publish all durable=false
acl allow publisher create queue name=RequestQueue
acl allow consumer consume queue durable=true
acl allow fred@QPID create all
acl allow bob@QPID all queue
acl allow admin all
acl deny kim@QPID all
acl allow all consume queue owner=self
acl allow all bind exchange owner=self
# Last (default) rule
acl deny all all
"""


def problems(text: str) -> list[str]:
    with pytest.raises(AclError) as caught:
        read(text, "users.acl", resolver=unknown_host)
    return [f"{problem.line}: {problem.message}" for problem in caught.value.problems]


def unknown_host(host: str) -> str:
    raise OSError(f"no host {host}")


def test_the_example_of_the_manual() -> None:
    rules = read(MANUAL, "users.acl")
    assert rules.groups["publisher"] == {
        *("kim@QPID", "martin@QPID", "ted@QPID", "rob@QPID"),
        *("tom@QPID", "andrew@QPID", "debbie@QPID"),
    }
    assert len(rules.rules) == 13
    assert rules.default is not None
    assert rules.default.outcome is RuleOutcome.DENY
    # What is not asked for today, and a user without a realm, are named.
    assert [(warning.line, warning.message.partition(":")[0]) for warning in rules.warnings] == [
        (11, 'the rule never matches "bind exchange"'),
        (15, 'no user is named "consumer"'),
        (15, 'the rule never matches "consume queue"'),
        (20, 'the rule never matches "consume queue"'),
        (21, 'the rule never matches "bind exchange"'),
    ]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("acl allow bob@QPID", ["1: Line : 1, Insufficient tokens for acl definition."]),
        ("acl permit all all", ['1: Line : 1, Unknown ACL permission "permit".']),
        ("acl allow all all queue", ['1: Line : 1, Tokens found after action "all".']),
        ("acl allow all eat queue", ['1: Line : 1, Unknown action "eat".']),
        ("acl allow all create qeue", ['1: Line : 1, Unknown object "qeue".']),
        (
            "acl allow all create queue name",
            ['1: Line : 1, Badly formed property name-value pair "name". (Must be name=value)'],
        ),
        ("acl allow all create queue colour=red", ['1: Line : 1, Unknown property "colour".']),
        (
            "acl allow all create queue queuemaxsizeupperlimit=big",
            [
                "1: Line : 1, big is not a valid value for 'queuemaxsizeupperlimit', values should be between 0 and "
                "9223372036854775807"
            ],
        ),
        (
            "acl allow all create queue policytype=flow",
            [
                "1: Line : 1, flow is not a valid value for 'policytype', possible values are one of "
                "{ 'ring' 'self-destruct' 'reject' }"
            ],
        ),
        ("group g", ["1: Line : 1, Insufficient tokens for group definition."]),
        ("group a.b c@QPID", ['1: Line : 1, Group name "a.b" contains illegal characters.']),
        ("group g a@QPID\ngroup g b@QPID", ['2: Line : 2, Duplicate group name "g".']),
        (
            "group g name1",
            ['1: Line : 1, Sub-group "name1" not defined yet. (A user has a realm: name1@QPID)'],
        ),
        ("group g bob.smith", ["1: Line : 1, Username 'bob.smith' must contain a realm"]),
        ("group g bob@", ["1: Line : 1, Username 'bob@' must contain a realm"]),
        ("group g b$b@QPID", ['1: Line : 1, Username "b$b@QPID" contains illegal characters.']),
        ("quota connections", ["1: Line : 1, Insufficient tokens for quota definition."]),
        ("quota links 1 all", ['1: Line : 1, Quota type "links" unrecognized.']),
        (
            "quota queues many all",
            ['1: Line : 1, queues quota value "many" cannot be converted to a 16-bit unsigned integer.'],
        ),
        (
            "quota queues 65531 all",
            ['1: Line : 1, queues quota value "65531" exceeds maximum configuration setting of 65530'],
        ),
        (
            "allow all all",
            ['1: Line : 1, Non-continuation line must start with "group", "acl". or "quota".'],
        ),
        (
            "acl allow all all\nacl allow all create connection",
            ["2: Line : 2, CREATE CONNECTION rule has no 'host' property"],
        ),
        (
            "acl allow all create connection host=all\nacl deny all create connection host=all",
            ["2: Line : 2, only one CREATE CONNECTION rule for user=all and host=all allowed"],
        ),
        (
            "acl allow all create connection host=nowhere",
            ["1: Line : 1, Invalid AclHost: the host 'nowhere' has no address"],
        ),
        (
            "acl allow all create connection host=10.0.0.1,::1",
            ["1: Line : 1, Invalid AclHost: '10.0.0.1,::1': one address is of IPv4, the other one of IPv6"],
        ),
        ("group g a@QPID \\\n\\\n b@QPID", None),
        (
            "acl allow all all \\\n a@QPID",
            ['2: Line : 2, only lines that begin with "group" can be continued; the line before is.'],
        ),
        (
            "x" * MAX_LINE,
            ["1: Line : 1, a line has at most 1,023 characters, this one 1,024."],
        ),
    ],
)
def test_errors_name_the_line(text: str, found: list[str] | None) -> None:
    assert found is None or problems(text) == found
    assert problems(text)


def test_all_errors_are_reported_in_the_words_of_qpidd() -> None:
    with pytest.raises(AclError) as caught:
        read("group g\nacl allow all all\nacl allow all eat\n", "users.acl")
    assert str(caught.value) == (
        "ACL format error: users.acl:1: Line : 1, Insufficient tokens for group definition.\n"
        'ACL format error: users.acl:3: Line : 3, Unknown action "eat".'
    )


def test_comments_and_blank_lines_stand_anywhere_but_behind_a_rule() -> None:
    rules = read(
        "#acl deny all all\n\n  \t\ngroup g a@QPID \\\n# within a group\n b@QPID\nacl allow g all\n", "users.acl"
    )
    assert rules.groups["g"] == {"a@QPID", "b@QPID"}
    assert problems(" # indented") != []


def test_a_group_may_be_named_before_its_members() -> None:
    assert read("group g \\\n a@QPID", "users.acl").groups["g"] == {"a@QPID"}


def test_a_name_is_a_group_only_from_its_definition_on() -> None:
    rules = read("acl deny g create queue\ngroup g a@QPID\nacl allow g create queue", "users.acl")
    assert [rule.users for rule in rules.rules] == [frozenset({"g"}), frozenset({"a@QPID"})]
    assert [warning.line for warning in rules.warnings] == [1]


def test_quotas_of_a_group_are_those_of_each_member() -> None:
    rules = read("group g a@QPID b@QPID\nquota queues 5 all g\nquota queues 0 b@QPID\n", "users.acl")
    quota = rules.quotas["queues"]
    assert [quota.limit(user) for user in ("a@QPID", "b@QPID", "c@QPID")] == [5, 0, 5]
    assert rules.quotas["connections"].limit("a@QPID") is None


def test_users_that_no_quota_names_have_none_where_there_are_quotas() -> None:
    assert read("quota connections 5 a@QPID", "users.acl").quotas["connections"].limit("b@QPID") == 0


def test_older_names_of_limits() -> None:
    rule = read("acl allow all create queue maxqueuesize=5 maxqueuecount=6", "users.acl").rules[0]
    assert rule.properties == {"queuemaxsizeupperlimit": "5", "queuemaxcountupperlimit": "6"}


def test_a_property_that_stands_twice_is_that_of_the_first() -> None:
    rules = read("acl allow all create queue name=a name=b", "users.acl")
    assert rules.rules[0].properties == {"name": "a"}
    assert "name=b" in rules.warnings[0].message


@given(st.text(alphabet=st.sampled_from('acl groupqt\\\n#@=*" 0é\x00$')))
def test_any_text_is_read_or_has_errors_with_lines(text: str) -> None:
    found: tuple[SchemaProblem, ...] = ()
    try:
        rules = read(text, "users.acl", resolver=unknown_host)
    except AclError as error:
        found = error.problems
    else:
        assert rules.decide(Lookup("a@QPID", "purge", "queue", "q")).outcome is RuleOutcome.DENY
    assert all(0 < problem.line <= text.count("\n") + 1 for problem in found)
