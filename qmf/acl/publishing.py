"""The rules about publishing for one user and one exchange, found by routing key: a message costs the same however many
there are.
"""

from __future__ import annotations

from collections.abc import Iterable

from qmf.acl.key_index import KeyIndex
from qmf.acl.rules import AclRule, has_placeholder
from qmf.acl.users import restore_placeholders, texts_of_user
from qmf.acl.words import RuleOutcome
from qmf.bus.topics import AMQP_TOPICS, MAX_CACHED, MAX_CACHED_KEY, TopicDialect

#: Keys that are known to be allowed, and how many others are asked for until these are forgotten for newer ones.
MAX_KNOWN, MAX_OTHERS = MAX_CACHED, 10 * MAX_CACHED

#: First words that are told apart by the beginnings of keys: more would cost more than `PublishingRules.allows`.
MAX_BEGINNINGS = 8


class PublishingRules:
    """Which rule is the first one that matches a routing key.

    Attributes:
        beginnings: of keys that `allows` allows, unless there is a ``$`` in them.
        known: some of the keys that it has allowed.
    """

    def __init__(
        self, rules: Iterable[AclRule], user: str, default: AclRule | None, dialect: TopicDialect = AMQP_TOPICS
    ) -> None:
        """Prepare the rules, which are read in order.

        Args:
            rules: that match the user, the operation and the exchange, in file order.
            user: with realm.
            default: decides where none of them matches.
            dialect: of the exchange's keys.
        """
        self._texts = texts_of_user(user)
        self._rules: list[AclRule] = []
        # Places in the list above, by the keys of the rules: as they are, and those with placeholders.
        plain: list[tuple[str, int]] = []
        of_user: list[tuple[str, int]] = []
        #: The rule without a key, which decides where none before it does.
        self._last = default
        for rule in rules:
            key = rule.properties.get("routingkey")
            if key is None:
                self._last = rule
                break
            (of_user if has_placeholder(key) else plain).append((key, len(self._rules)))
            self._rules.append(rule)
        self._plain = KeyIndex(plain, dialect)
        self._of_user = KeyIndex(of_user, dialect)
        self._has_own = bool(of_user)
        self._allows = [rule.outcome is RuleOutcome.ALLOW for rule in self._rules]
        self._last_allows = self._last is not None and self._last.outcome is RuleOutcome.ALLOW
        self._separator = dialect.separator
        #: First words with which all keys are allowed: nearly all messages need no more than a look at these.
        self._free_words = frozenset(
            word for word, place in self._plain.whole_words().items() if self._allows[place] and not self._has_own
        )
        self.known: set[str] = set()
        self._others = 0
        self.beginnings: tuple[str, ...] = ()
        if len(self._free_words) <= MAX_BEGINNINGS:
            self.beginnings = tuple(sorted(word + self._separator for word in self._free_words))

    def first(self, key: str) -> AclRule | None:
        """The rule that decides; None where none matches and there is no default."""
        if "${" in key and has_placeholder(key):
            return self._last
        place = self._place(key)
        return self._last if place is None else self._rules[place]

    def allows(self, key: str) -> bool:
        """Publishing with a key is allowed, by a rule that does not log; otherwise `first` decides."""
        if "${" in key:
            return False
        if self._free_words and key.partition(self._separator)[0] in self._free_words:
            return True
        place = self._place(key) if self._has_own else self._plain.first(key)
        allowed = self._last_allows if place is None else self._allows[place]
        if allowed and len(key) <= MAX_CACHED_KEY:
            if len(self.known) < MAX_KNOWN:
                self.known.add(key)
            elif self._others < MAX_OTHERS:
                self._others += 1
            else:
                self._others = 0
                self.known.clear()
        return allowed

    def _place(self, key: str) -> int | None:
        place = self._plain.first(key)
        if self._has_own:
            restored = restore_placeholders(key, self._texts)
            # Rules about a user match no key that has nothing of that user.
            if (
                restored != key
                and (own := self._of_user.first(restored)) is not None
                and (place is None or own < place)
            ):
                return own
        return place
