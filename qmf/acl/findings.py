"""What a valid file may still do wrong: rules that never decide, groups without use, an open default."""

from __future__ import annotations

from collections.abc import Iterator

from qmf.acl.rules import AclRule, describe_rule
from qmf.acl.ruleset import RuleSet
from qmf.acl.words import LIMITS
from qmf.errors import SchemaProblem


def findings(rules: RuleSet) -> list[SchemaProblem]:
    """All of it, in file order; the warnings of the reader among it."""
    found = [*rules.warnings]
    found += (SchemaProblem(rules.file, line, message) for line, message in _all(rules))
    return sorted(found, key=lambda problem: problem.line)


def covers(rule: AclRule, other: AclRule) -> bool:
    """Whether a rule matches everything that another one matches. Where it can't be known, the answer is no."""
    return (
        (rule.users is None or (other.users is not None and other.users <= rule.users))
        and rule.action in (None, other.action)
        and rule.object_type in (None, other.object_type)
        and all(
            name in other.properties and _implies(name, value, other.properties[name])
            for name, value in rule.properties.items()
        )
    )


def _implies(name: str, value: str, narrower: str) -> bool:
    """Whether what matches a value of a rule matches another value as well."""
    if name in LIMITS:
        return True  # a limit does not decide whether a rule matches
    if name == "routingkey":
        return value in ("#", narrower)
    return narrower.startswith(value[:-1]) if value.endswith("*") else value == narrower


def _all(rules: RuleSet) -> Iterator[tuple[int, str]]:
    yield from _shadowed_rules(rules)
    yield from _unused_groups(rules)
    if rules.default is None:
        last = max((rule.line for rule in rules.rules), default=1)
        yield last, "no rule for everything: what no rule matches is denied"
    elif rules.default.outcome.allows:
        yield rules.default.line, "everything that no rule matches is allowed"


def _shadowed_rules(rules: RuleSet) -> Iterator[tuple[int, str]]:
    for position, rule in enumerate(rules.rules):
        first = next((earlier for earlier in rules.rules[:position] if covers(earlier, rule)), None)
        if first is not None and _matches_something(rule):
            yield (
                rule.line,
                f'the rule never decides: line {first.line}, "{describe_rule(first)}", matches all of it before',
            )


def _matches_something(rule: AclRule) -> bool:
    return any(rule.concerns(action, object_type) for action, object_type in rule.vocabulary.lookups)


def _unused_groups(rules: RuleSet) -> Iterator[tuple[int, str]]:
    subjects = {rule.subject for rule in [*rules.rules, *(found.rule for found in rules.hosts)]}
    subjects.update(rules.used_groups)
    for name, line in rules.group_lines.items():
        if not rules.groups[name]:
            yield line, f'the group "{name}" has no members'
        if name not in subjects:
            yield line, f'no rule, quota or group names the group "{name}"'
