"""The examples of the broker's manual, chapter 9, as they stand there, and what they decide."""

from __future__ import annotations

import pytest

from qmf.acl.findings import findings
from qmf.acl.reader import AclError, read
from qmf.acl.rules import Lookup

#: 9.1.1: groups that are continued. Names have a realm today.
CONTINUED = """# Examples of extending group lists using a trailing '\\' character
group group1 name1 name2 \\
name3 name4 \\
name5
group group2 \\
group1 \\
name6
"""
#: 9.1.1: what is illegal.
NO_NAME, EMPTY_EXTENSION = (
    "# '\\' must be after group name\ngroup \\\ngroup3 name7 name8\n",
    "# No empty extension lines\ngroup group4 name9 \\\n\\\nname10\n",
)
#: 9.1.3 is in `test_reader.py`.
DEAD_RULE = "acl allow peter@QPID create queue name=tmp\nacl allow peter@QPID create queue\nacl deny all all\n"
LOGGED = "acl allow-log john@QPID all all\nacl deny-log guest@QPID all all\n"
#: Table 1.4.
JOIN = "acl allow admin@QPID update broker name=joinCluster\n"


def decided(text: str, user: str, action: str, object_type: str, name: str = "", **properties: str) -> str:
    return read(text, "manual.acl").decide(Lookup(user, action, object_type, name, properties)).outcome.value


def test_groups_that_are_continued() -> None:
    text = CONTINUED
    for number in range(1, 7):
        text = text.replace(f"name{number}", f"name{number}@QPID")
    groups = read(text, "manual.acl").groups
    assert groups["group1"] == {f"name{number}@QPID" for number in range(1, 6)}
    assert groups["group2"] == {f"name{number}@QPID" for number in range(1, 7)}
    # As it stands there, today's qpidd takes the names for groups.
    with pytest.raises(AclError, match='Sub-group "name1" not defined yet'):
        read(CONTINUED, "manual.acl")


@pytest.mark.parametrize("text", [NO_NAME, EMPTY_EXTENSION])
def test_what_is_illegal(text: str) -> None:
    with pytest.raises(AclError):
        read(text.replace("name9", "name9@QPID"), "manual.acl")


def test_spaces_and_comments() -> None:
    text = "# a comment\n\n \t\f\v\r\nacl   allow \t all   consume    queue\nacl deny all all\n"
    assert decided(text, "any@QPID", "consume", "queue", "q") == "allow"
    with pytest.raises(AclError, match='Unknown action "CONSUME"'):
        read("acl allow all CONSUME queue\n", "manual.acl")


def test_the_last_line_is_assumed() -> None:
    assert decided("", "any@QPID", "consume", "queue", "q") == "deny"
    assert decided("acl allow all all\n", "any@QPID", "consume", "queue", "q") == "allow"


def test_a_dead_rule() -> None:
    assert [problem.message for problem in findings(read(DEAD_RULE.replace("name=tmp\n", "\n", 1), "manual.acl"))] == [
        'the rule never decides: line 1, "peter@QPID create queue", matches all of it before'
    ]
    # The first rule of the example is narrower than the second: it decides nothing that the other would not.
    assert decided(DEAD_RULE, "peter@QPID", "create", "queue", "tmp") == "allow"
    assert decided(DEAD_RULE, "peter@QPID", "create", "queue", "other") == "allow"


def test_decisions_that_are_logged() -> None:
    assert decided(LOGGED, "john@QPID", "create", "queue", "q") == "allow-log"
    assert decided(LOGGED, "guest@QPID", "create", "queue", "q") == "deny-log"
    assert decided(LOGGED, "other@QPID", "create", "queue", "q") == "deny"


def test_management_actions() -> None:
    assert decided(JOIN, "admin@QPID", "update", "broker", "joinCluster") == "allow"
    assert decided(JOIN, "admin@QPID", "update", "broker", "other") == "deny"


def test_without_authentication_everything_is_denied_that_all_may_not() -> None:
    assert decided("acl allow admin@QPID all\nacl deny all all\n", "anonymous@QPID", "consume", "queue", "q") == "deny"
