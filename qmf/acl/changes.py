"""What would have to change in a file, and what a changed file changes for its users."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping

import attrs

from qmf.acl.rules import AclRule, Lookup
from qmf.acl.ruleset import Decision, RuleSet
from qmf.acl.users import replace_placeholders
from qmf.acl.words import LIMITS

#: Stands for all users that a file doesn't name.
OTHER_USER = "anybody-else@QPID"

#: Names and keys besides those in the files.
_OTHER = "any-other-name"


def permission(rules: RuleSet, lookup: Lookup) -> str:
    """The smallest change that would allow what a lookup asks for and is denied."""
    decision = rules.decide(lookup)
    name = f" name={lookup.name}" if lookup.name else ""
    if (lookup.action, lookup.object_type) == ("create", "connection"):
        name = f" host={(lookup.properties or {}).get('host', '')}"
    line = f"acl allow {lookup.user} {lookup.action} {lookup.object_type}{name}"
    rule = decision.rule
    if rule is None:
        return f"add: {line}"
    if decision.limit:
        number = (lookup.properties or {}).get(LIMITS[decision.limit].property, "")
        return f"change line {rule.line}: {decision.limit}={number}; or insert before it: {line}"
    return f"insert before line {rule.line}: {line}"


@attrs.frozen
class Difference:
    """Something that two files decide otherwise.

    Attributes:
        lookup: what is asked for.
        old, new: decisions.
    """

    lookup: Lookup
    old: Decision
    new: Decision

    @property
    def gained(self) -> bool:
        """It is allowed now; otherwise it is denied now."""
        return self.new.allows

    def conditions(self) -> Iterator[tuple[str, str]]:
        """The name and the properties of the lookup on which one of the decisions depends."""
        rules = [decision.rule for decision in (self.old, self.new) if decision.rule is not None]
        named = {LIMITS[name].property if name in LIMITS else name for rule in rules for name in rule.properties}
        if self.lookup.name and self.lookup.name != _OTHER:
            yield "name", self.lookup.name
        yield from ((name, value) for name, value in (self.lookup.properties or {}).items() if name in named)


def differences(old: RuleSet, new: RuleSet) -> Iterator[Difference]:
    """What two files of a kind decide otherwise, among representatives: each user, name and value that either of them
    names, and others. Values that only together make a difference are tried together where a rule has them together.
    """
    every = [*_all_rules(old), *_all_rules(new)]
    lookups = old.vocabulary.lookups
    for (action, object_type), user in itertools.product(lookups, _users(every)):
        concerned = [rule for rule in every if rule.concerns_user(user) and rule.concerns(action, object_type)]
        widest = max(lookups[action, object_type], key=len)
        for name, properties in _samples(user, action, object_type, widest, concerned):
            lookup = Lookup(user, action, object_type, name, properties, publishing=action == "publish")
            before, after = old.decide(lookup), new.decide(lookup)
            if before.allows != after.allows:
                yield Difference(lookup, before, after)


def _all_rules(rules: RuleSet) -> Iterable[AclRule]:
    hosts = [found.rule for found in rules.hosts]
    return [*rules.rules, *([] if rules.default is None else [rules.default]), *hosts] + (
        [] if rules.connection_default is None else [rules.connection_default.rule]
    )


def _users(rules: Iterable[AclRule]) -> list[str]:
    return [*sorted({user for rule in rules for user in rule.users or ()}), OTHER_USER]


def _samples(
    user: str, action: str, object_type: str, widest: Iterable[str], rules: Iterable[AclRule]
) -> Iterator[tuple[str, Mapping[str, str]]]:
    """A name and properties that each rule matches, and some that none does."""
    seen: set[tuple[str, tuple[tuple[str, str], ...]]] = set()
    nothing = {name: _other_value(name) for name in sorted(widest)}
    samples = [("" if (action, object_type) == ("create", "connection") else _OTHER, nothing)]
    for rule in rules:
        properties = dict(nothing)
        for name, value in rule.properties.items():
            if name in LIMITS:
                properties[LIMITS[name].property] = value
            elif name != "name":
                properties[name] = _example(value, user)
        samples.append(
            (_example(rule.properties["name"], user) if "name" in rule.properties else samples[0][0], properties)
        )
    for name, properties in samples:
        key = (name, tuple(sorted(properties.items())))
        if key not in seen:
            seen.add(key)
            yield name, properties


def _other_value(name: str) -> str:
    numbers = {limit.property for limit in LIMITS.values()}
    return "1" if name in numbers else "192.0.2.1" if name == "host" else "false" if name in _FLAGS else _OTHER


_FLAGS = {"durable", "exclusive", "autodelete", "paging"}


def _example(value: str, user: str) -> str:
    """Something that a value of a rule matches for a user."""
    first = replace_placeholders(value, user).partition(",")[0]
    return ".".join("x" if word in ("*", "#") else word for word in first.split(".")).removesuffix("*")
