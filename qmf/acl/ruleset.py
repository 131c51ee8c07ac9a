"""The rules of a file together: what they decide, why, and which rules were passed over."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs

from qmf.acl.hosts import HostRange, parse_address
from qmf.acl.rules import AclRule, Lookup
from qmf.acl.words import ALL, LIMITS, RuleOutcome
from qmf.errors import SchemaProblem

#: Users, each with a kind of operation, for which the rules that concern it are kept.
_MAX_KEPT = 10_000


@attrs.frozen
class Decision:
    """What the rules decide.

    Attributes:
        outcome: what.
        rule: that decides; None for the default without a rule.
        limit: property of the rule that the lookup exceeds, so that it is denied though the rule allows; else empty.
    """

    outcome: RuleOutcome
    rule: AclRule | None = None
    limit: str = ""

    @property
    def allows(self) -> bool:
        """The operation is done."""
        return self.outcome.allows

    def __str__(self) -> str:
        by = "no rule matches: the default" if self.rule is None else str(self.rule)
        return f"{self.outcome.value}: {by}" + (f" (exceeds {self.limit})" if self.limit else "")


@attrs.frozen
class Passed:
    """A rule for the user and the operation that did not match.

    Attributes:
        rule: which.
        reason: why it doesn't match.
    """

    rule: AclRule
    reason: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.reason}"


@attrs.frozen
class HostRule:
    """A rule for connections.

    Attributes:
        rule: the line.
        hosts: that it is for.
    """

    rule: AclRule
    hosts: HostRange


@attrs.frozen
class Quotas:
    """How many connections or queues users may have.

    Attributes:
        users: by name; `ALL` for those that are not named.
    """

    users: Mapping[str, int]

    def limit(self, user: str) -> int | None:
        """Of a user; None for no limit."""
        if not self.users:
            return None
        return self.users.get(user, self.users.get(ALL, 0))


@attrs.frozen(eq=False)
class RuleSet:
    """The rules of a file.

    Attributes:
        file: name of the file.
        rules: in file order, without those below.
        default: the last rule for everything: it decides when no other one matches. None: everything is denied then.
        hosts: rules for connections.
        connection_default: the rule for the connections of all users from all hosts; None: they are allowed.
        groups: members, by name.
        group_lines: where groups are defined.
        used_groups: names in quotas and other groups.
        quotas: of ``connections`` and ``queues``.
        warnings: of what has no effect.
    """

    file: str
    rules: Sequence[AclRule]
    default: AclRule | None
    hosts: Sequence[HostRule]
    connection_default: HostRule | None
    groups: Mapping[str, Collection[str]]
    group_lines: Mapping[str, int]
    used_groups: Collection[str]
    quotas: Mapping[str, Quotas]
    warnings: Sequence[SchemaProblem]
    _concerning: dict[tuple[str, str, str], Sequence[AclRule]] = attrs.field(init=False, factory=dict, repr=False)

    @property
    def has_publish_rules(self) -> bool:
        """Some rules are about publishing, so that each message to an exchange is looked up. Otherwise none is."""
        return any(
            rule.action is None
            or (rule.action == "publish" and (rule.object_type is None or rule.concerns("publish", rule.object_type)))
            for rule in self.rules
        )

    def decide(self, lookup: Lookup) -> Decision:
        """The first rule that matches decides, else the default."""
        if (lookup.action, lookup.object_type) == ("create", "connection"):
            return self.decide_connection(lookup.user, (lookup.properties or {}).get("host", ""))
        for rule in self._rules_for(lookup):
            if rule.mismatch(lookup) is None:
                limit = rule.exceeded(lookup)
                return Decision(rule.outcome.denied() if limit else rule.outcome, rule, limit or "")
        return Decision(RuleOutcome.DENY if self.default is None else self.default.outcome, self.default)

    def decide_connection(self, user: str, host: str) -> Decision:
        """Whether a user may connect from an address: rules for all users decide first, then those for the user.

        Args:
            user: who.
            host: address; anything else, such as a socket of the file system, is not subject to rules.
        """
        address = parse_address(host)
        if address is None:
            return Decision(RuleOutcome.ALLOW)
        for found in self._host_rules(user):
            if address in found.hosts:
                return Decision(found.rule.outcome, found.rule)
        last = self.connection_default
        return Decision(RuleOutcome.ALLOW) if last is None else Decision(last.rule.outcome, last.rule)

    def passed_over(self, lookup: Lookup) -> Iterator[Passed]:
        """The rules for the user and the operation that stand before the deciding one, and why they don't match."""
        if (lookup.action, lookup.object_type) == ("create", "connection"):
            host = (lookup.properties or {}).get("host", "")
            if (address := parse_address(host)) is None:
                return
            for found in self._host_rules(lookup.user):
                if address in found.hosts:
                    return
                yield Passed(found.rule, f"host: {host!r} is not in {found.hosts}")
            return
        for rule in self._rules_for(lookup):
            name = rule.mismatch(lookup)
            if name is None:
                return
            yield Passed(rule, _reason(rule, name, lookup))

    def _host_rules(self, user: str) -> Iterator[HostRule]:
        yield from (found for found in self.hosts if found.rule.users is None)
        yield from (found for found in self.hosts if found.rule.users is not None and found.rule.concerns_user(user))

    def _rules_for(self, lookup: Lookup) -> Sequence[AclRule]:
        key = (lookup.user, lookup.action, lookup.object_type)
        rules = self._concerning.get(key)
        if rules is None:
            if len(self._concerning) >= _MAX_KEPT:
                self._concerning.clear()
            rules = self._concerning[key] = [
                rule
                for rule in self.rules
                if rule.concerns_user(lookup.user) and rule.concerns(lookup.action, lookup.object_type)
            ]
        return rules


def _reason(rule: AclRule, name: str, lookup: Lookup) -> str:
    """Why a property of a rule doesn't match."""
    wanted = rule.properties[name]
    if name == "name":
        return f"name: {lookup.name!r} is not {wanted!r}"
    looked_up = LIMITS[name].property if name in LIMITS else name
    if looked_up not in (lookup.properties or {}):
        return f"{name}: unknown for this operation"
    return f"{name}: {(lookup.properties or {})[looked_up]!r} is not {wanted!r}"
