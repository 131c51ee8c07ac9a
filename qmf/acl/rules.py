"""Rules: what a line of the file says, and whether it matches a lookup."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import attrs

from qmf.acl.users import replace_placeholders, restore_placeholders, texts_of_user
from qmf.acl.words import (
    ALL,
    BROKER,
    DEFAULT_EXCHANGE,
    LIMITS,
    PLACEHOLDERS,
    WITH_PLACEHOLDERS,
    RuleOutcome,
    Vocabulary,
)
from qmf.bus.topics import MQTT_EXCHANGE, MQTT_TOPICS, TopicTable, covers


@attrs.frozen
class Lookup:
    """A question: may a user do something?

    Attributes:
        user: with realm, such as ``bob@QPID``.
        action, object_type: words of `qmf.acl.words`.
        name: of the object.
        properties: what is known of the object and the operation, as text; None if only the name is asked for: the
            other properties of rules are not compared then.
        publishing: a message is published: `name` is the exchange and ``routingkey`` the key. `DEFAULT_EXCHANGE` in a
            rule is the exchange without a name then, and a key that contains a placeholder matches no rule about keys.
        groups: that the user's access token names, besides those that the file says it is in.
    """

    user: str
    action: str
    object_type: str
    name: str = ""
    properties: Mapping[str, str] | None = attrs.field(factory=dict)
    publishing: bool = False
    groups: frozenset[str] = frozenset()

    def __str__(self) -> str:
        properties = "".join(f" {name}={value}" for name, value in (self.properties or {}).items())
        return f"{self.user} {self.action} {self.object_type} {self.name!r}{properties}"


@attrs.frozen(eq=False)
class AclRule:
    """A line ``acl ...``.

    Attributes:
        line: in the file, from 1.
        text: the line.
        outcome: what it decides.
        subject: the user, the group or `ALL`, as written.
        users: whom it is for; None for all.
        groups: for whose members it is, if an access token says who these are: the subject, if it is no user, and the
            groups within it.
        action: None for all.
        object_type: None for all.
        properties: that a lookup has to have, by the names in rules, aliases resolved.
        vocabulary: of the file.
    """

    line: int
    text: str
    outcome: RuleOutcome
    subject: str
    users: frozenset[str] | None
    action: str | None
    object_type: str | None
    properties: Mapping[str, str]
    groups: frozenset[str] = frozenset()
    vocabulary: Vocabulary = attrs.field(default=BROKER, repr=False)
    _topics: TopicTable[str] = attrs.field(init=False, repr=False, factory=TopicTable)
    _mqtt_topics: TopicTable[str] = attrs.field(init=False, repr=False, factory=lambda: TopicTable(MQTT_TOPICS))

    def __attrs_post_init__(self) -> None:
        if "routingkey" in self.properties:
            for topics in (self._topics, self._mqtt_topics):
                topics.add(self.properties["routingkey"], "")

    def __str__(self) -> str:
        return f"line {self.line}: {self.text}"

    @property
    def is_default(self) -> bool:
        """It is for all users, actions and objects."""
        return self.users is None and self.action is None

    def concerns_user(self, user: str, groups: frozenset[str] = frozenset()) -> bool:
        """It is for a user, of whom a token says that it is in some groups."""
        return self.users is None or user in self.users or not self.groups.isdisjoint(groups)

    def concerns(self, action: str, object_type: str) -> bool:
        """It can match a lookup of this kind."""
        return (
            self.action in (None, action)
            and self.object_type in (None, object_type)
            and self.vocabulary.can_match(action, object_type, self.properties)
        )

    def mismatch(self, lookup: Lookup, *, but: Collection[str] = ()) -> str | None:
        """The property because of which a lookup, of which `concerns` holds, does not match; None if it matches.

        Args:
            lookup: the lookup.
            but: properties that are not compared.
        """
        for name, value in self.properties.items():
            if name in but:
                continue
            if name == "name":
                matches = self.matches_name(lookup)
            elif lookup.properties is None or (name in LIMITS and LIMITS[name].property in lookup.properties):
                matches = True
            elif name not in lookup.properties:
                matches = False
            elif name == "routingkey":
                matches = self._matches_key(lookup.properties[name], lookup)
            else:
                matches = _matches_text(_replace_user(name, value, lookup.user), lookup.properties[name])
            if not matches:
                return name
        return None

    def exceeded_limit(self, lookup: Lookup) -> str | None:
        """The limit that a lookup which matches does not keep; None if it keeps all."""
        for name, value in self.properties.items():
            limit = LIMITS.get(name)
            if limit is None or lookup.properties is None or (bound := int(value)) == 0:
                continue
            try:
                number = int(lookup.properties[limit.property])
            except ValueError:
                return name
            if number > bound if limit.upper else number < bound:
                return name
        return None

    def matches_name(self, lookup: Lookup) -> bool:
        """Its name, if it has one, matches a lookup."""
        if (value := self.properties.get("name")) is None:
            return True
        if lookup.publishing and value == DEFAULT_EXCHANGE:
            return not lookup.name
        return _matches_text(_replace_user("name", value, lookup.user), lookup.name)

    def _matches_key(self, key: str, lookup: Lookup) -> bool:
        if lookup.publishing and has_placeholder(key):
            return False
        if has_placeholder(self.properties["routingkey"]):
            key = restore_placeholders(key, texts_of_user(lookup.user))
        if lookup.name == MQTT_EXCHANGE and lookup.object_type == "exchange":
            if lookup.publishing:
                return bool(self._mqtt_topics.match(key))
            return covers(self.properties["routingkey"], key)
        return bool(self._topics.match(key))


def describe_rule(rule: AclRule) -> str:
    """Whom and what a rule is for, without what it decides."""
    properties = "".join(f" {name}={value}" for name, value in rule.properties.items())
    return f"{rule.subject} {rule.action or ALL} {rule.object_type or ALL}{properties}"


def has_placeholder(text: str) -> bool:
    """Something of a user stands for a part of a text."""
    return any(placeholder in text for placeholder in PLACEHOLDERS)


def _replace_user(name: str, value: str, user: str) -> str:
    return replace_placeholders(value, user) if name in WITH_PLACEHOLDERS and "${" in value else value


def _matches_text(pattern: str, text: str) -> bool:
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern
