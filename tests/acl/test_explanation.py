"""Why rules decide as they do, as text."""

from __future__ import annotations

from qmf.acl.explanation import explain
from qmf.acl.reader import read
from qmf.acl.rules import Lookup

RULES = """acl allow bob@QPID create queue name=b.*
acl deny all all
"""


def test_what_is_denied_names_the_rules_and_the_change_that_would_allow_it() -> None:
    explanation = explain(read(RULES, "rules.acl"), Lookup("bob@QPID", "create", "queue", "c"))
    assert not explanation.decision.allows
    passed, decision, change = explanation.lines()
    assert passed.startswith("passed over")
    assert "b.*" in passed
    assert "deny" in decision
    assert change == f"to allow it, {explanation.change}"
    assert "bob@QPID create queue" in change


def test_what_is_allowed_needs_no_change() -> None:
    explanation = explain(read(RULES, "rules.acl"), Lookup("bob@QPID", "create", "queue", "b.1"))
    assert (explanation.decision.allows, explanation.passed, explanation.change) == (True, (), "")
    assert len(explanation.lines()) == 1
