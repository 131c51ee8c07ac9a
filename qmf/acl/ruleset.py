"""The rules of a file together: what they decide, why, and which rules were passed over."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs

from qmf.acl.hosts import HostRange, parse_address
from qmf.acl.publishing import PublishingRules
from qmf.acl.rules import AclRule, Lookup
from qmf.acl.words import ALL, BROKER, LIMITS, RuleOutcome, Vocabulary
from qmf.bus.topics import AMQP_TOPICS, MQTT_EXCHANGE, MQTT_TOPICS
from qmf.errors import SchemaProblem

#: Users, each with a kind of operation, for which the rules that concern it are kept.
_MAX_KEPT = 10_000
#: Users, each with an exchange, for which the rules about publishing are kept.
_MAX_PUBLISHING = 1_000


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
        groups: by the names of groups, for members of whom a token says that they are.
    """

    users: Mapping[str, int]
    groups: Mapping[str, int] = attrs.field(factory=dict)

    def limit(self, user: str, groups: Collection[str] = ()) -> int | None:
        """Of a user; None for no limit. Of several groups that a token names, the largest one counts."""
        if not self.users:
            return None
        if user not in self.users and (own := [self.groups[name] for name in groups if name in self.groups]):
            return max(own)
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
        vocabulary: of the file.
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
    vocabulary: Vocabulary = BROKER
    _concerning: dict[tuple[str, frozenset[str], str, str], Sequence[AclRule]] = attrs.field(
        init=False, factory=dict, repr=False
    )
    _publishing: dict[tuple[str, frozenset[str], str], PublishingRules] = attrs.field(
        init=False, factory=dict, repr=False
    )

    @property
    def has_publish_rules(self) -> bool:
        """Some rules are about publishing, so that each message to an exchange is looked up. Otherwise none is."""
        return any(_is_about_publishing(rule) for rule in self.rules)

    def of_user(self, user: str, groups: frozenset[str] = frozenset()) -> Iterator[AclRule]:
        """The rules for a user, as of `decide_connection`: those for connections, the others, and the default."""
        hosts = [found.rule for found in (*self.hosts, self.connection_default) if found is not None]
        default = [] if self.default is None else [self.default]
        return (rule for rule in (*hosts, *self.rules, *default) if rule.concerns_user(user, groups))

    def decide(self, lookup: Lookup) -> Decision:
        """The first rule that matches decides, else the default."""
        if (lookup.action, lookup.object_type) == ("create", "connection"):
            return self.decide_connection(lookup.user, (lookup.properties or {}).get("host", ""), lookup.groups)
        if lookup.publishing and lookup.properties is not None and "routingkey" in lookup.properties:
            first = self._publishing_rules(lookup).first(lookup.properties["routingkey"])
            return self._by_default() if first is None else Decision(first.outcome, first)
        for rule in self.rules_for(lookup):
            if rule.mismatch(lookup) is None:
                limit = rule.exceeded_limit(lookup)
                return Decision(rule.outcome.deny() if limit else rule.outcome, rule, limit or "")
        return self._by_default()

    def publishing_rules(self, user: str, groups: frozenset[str], exchange: str) -> PublishingRules:
        """The rules about publishing to an exchange for one user, for many keys.

        Args:
            user: with realm.
            groups: that the user's access token names.
            exchange: its name; empty for the default one.
        """
        return self._publishing_rules(Lookup(user, "publish", "exchange", exchange, publishing=True, groups=groups))

    def _by_default(self) -> Decision:
        return Decision(RuleOutcome.DENY if self.default is None else self.default.outcome, self.default)

    def decide_connection(self, user: str, host: str, groups: frozenset[str] = frozenset()) -> Decision:
        """Whether a user may connect from an address: rules for all users decide first, then those for the user.

        Args:
            user: who.
            host: address; anything else, such as a socket of the file system, is not subject to rules.
            groups: that the user's access token names.
        """
        address = parse_address(host)
        if address is None:
            return Decision(RuleOutcome.ALLOW)
        for found in self._host_rules(user, groups):
            if address in found.hosts:
                return Decision(found.rule.outcome, found.rule)
        last = self.connection_default
        return Decision(RuleOutcome.ALLOW) if last is None else Decision(last.rule.outcome, last.rule)

    def rules_passed_over(self, lookup: Lookup) -> Iterator[Passed]:
        """The rules for the user and the operation that stand before the deciding one, and why they don't match."""
        if (lookup.action, lookup.object_type) == ("create", "connection"):
            host = (lookup.properties or {}).get("host", "")
            if (address := parse_address(host)) is None:
                return
            for found in self._host_rules(lookup.user, lookup.groups):
                if address in found.hosts:
                    return
                yield Passed(found.rule, f"host: {host!r} is not in {found.hosts}")
            return
        for rule in self.rules_for(lookup):
            name = rule.mismatch(lookup)
            if name is None:
                return
            yield Passed(rule, _reason(rule, name, lookup))

    def possible(self, lookup: Lookup, unknown: Collection[str]) -> frozenset[bool]:
        """What is decided for any values of properties that are not known: allowed, denied, or the one or the other.

        Args:
            lookup: of anything but a connection.
            unknown: the properties, ``name`` among them.
        """
        found: set[bool] = set()
        for rule in self.rules_for(lookup):
            if rule.mismatch(lookup, but=unknown) is None:
                found.add(rule.outcome.allows)
                if not any(name in rule.properties for name in unknown):
                    return frozenset(found)
        return frozenset({*found, self._by_default().allows})

    def _host_rules(self, user: str, groups: frozenset[str]) -> Iterator[HostRule]:
        yield from (found for found in self.hosts if found.rule.users is None)
        yield from (
            found for found in self.hosts if found.rule.users is not None and found.rule.concerns_user(user, groups)
        )

    def _publishing_rules(self, lookup: Lookup) -> PublishingRules:
        key = (lookup.user, lookup.groups, lookup.name)
        found = self._publishing.get(key)
        if found is None:
            if len(self._publishing) >= _MAX_PUBLISHING:
                self._publishing.clear()
            matching = (rule for rule in self.rules_for(lookup) if rule.matches_name(lookup))
            dialect = MQTT_TOPICS if lookup.name == MQTT_EXCHANGE else AMQP_TOPICS
            found = self._publishing[key] = PublishingRules(matching, lookup.user, self.default, dialect)
        return found

    def rules_for(self, lookup: Lookup) -> Sequence[AclRule]:
        """The rules for a user and a kind of operation, whatever it is about."""
        key = (lookup.user, lookup.groups, lookup.action, lookup.object_type)
        rules = self._concerning.get(key)
        if rules is None:
            if len(self._concerning) >= _MAX_KEPT:
                self._concerning.clear()
            rules = self._concerning[key] = [
                rule
                for rule in self.rules
                if rule.concerns_user(lookup.user, lookup.groups) and rule.concerns(lookup.action, lookup.object_type)
            ]
        return rules


def _is_about_publishing(rule: AclRule) -> bool:
    return rule.action is None or (
        rule.action == "publish" and (rule.object_type is None or rule.concerns("publish", rule.object_type))
    )


def _reason(rule: AclRule, name: str, lookup: Lookup) -> str:
    """Why a property of a rule doesn't match."""
    wanted = rule.properties[name]
    if name == "name":
        return f"name: {lookup.name!r} is not {wanted!r}"
    looked_up = LIMITS[name].property if name in LIMITS else name
    if looked_up not in (lookup.properties or {}):
        return f"{name}: unknown for this operation"
    return f"{name}: {(lookup.properties or {})[looked_up]!r} is not {wanted!r}"
