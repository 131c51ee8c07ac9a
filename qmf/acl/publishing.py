"""The rules about publishing for one user and one exchange, found by routing key: a message costs the same however many
there are.
"""

from __future__ import annotations

from collections.abc import Iterable

from qmf.acl.rules import AclRule, has_placeholder
from qmf.acl.users import restore_placeholders
from qmf.bus.topics import AMQP_TOPICS, TopicDialect, TopicTable


class PublishingRules:
    """Which rule is the first one that matches a routing key."""

    def __init__(self, rules: Iterable[AclRule], user: str, dialect: TopicDialect = AMQP_TOPICS) -> None:
        """Prepare the rules, which are read in order.

        Args:
            rules: that match the user, the operation and the exchange, in file order.
            user: with realm.
            dialect: of the exchange's keys.
        """
        self._user = user
        self._rules: list[AclRule] = []
        #: Places in the list above, by the keys of the rules: as they are, and those with placeholders.
        self._plain: TopicTable[int] = TopicTable(dialect)
        self._of_user: TopicTable[int] = TopicTable(dialect)
        self._has_own = False
        #: The rule without a key, which decides where none before it does.
        self._last: AclRule | None = None
        for rule in rules:
            key = rule.properties.get("routingkey")
            if key is None:
                self._last = rule
                break
            own = has_placeholder(key)
            self._has_own |= own
            (self._of_user if own else self._plain).add(key, len(self._rules))
            self._rules.append(rule)

    def first(self, key: str) -> AclRule | None:
        """The rule that decides; None where none matches."""
        if has_placeholder(key):
            return self._last
        places = [*self._plain.match(key)]
        if self._has_own:
            places += self._of_user.match(restore_placeholders(key, self._user))
        return self._rules[min(places)] if places else self._last
