"""Why rules decide as they do: for people."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf.acl.changes import permission
from qmf.acl.rules import Lookup
from qmf.acl.ruleset import Decision, Passed, RuleSet


@attrs.frozen
class Explanation:
    """A decision with its reasons.

    Attributes:
        decision: of the rules.
        passed: rules that stand before the deciding one, and don't match.
        change: the smallest one that would allow what is denied; empty for what is allowed.
    """

    decision: Decision
    passed: Sequence[Passed]
    change: str = ""

    def lines(self) -> list[str]:
        """As text."""
        change = [f"to allow it, {self.change}"] if self.change else []
        return [*(f"passed over  {passed}" for passed in self.passed), str(self.decision), *change]


def explain(rules: RuleSet, lookup: Lookup) -> Explanation:
    """What rules decide, and why."""
    decision = rules.decide(lookup)
    change = "" if decision.allows else permission(rules, lookup)
    return Explanation(decision, tuple(rules.rules_passed_over(lookup)), change)
