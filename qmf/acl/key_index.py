"""The first of many patterns of routing keys that matches a key, at a cost that does not grow with their number.

Patterns without wildcards are looked up as they are. Those with wildcards are told apart by the first word of the key:
where the first one that can match a key with that word matches all of these, as ``stock.#`` does, it is the answer.
Otherwise a trie of words is searched.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

from qmf.bus.topics import TopicDialect, TopicTable


class _Search(enum.Enum):
    """Stands for an answer that depends on further words."""

    NEEDED = "needed"


class KeyIndex:
    """Places of patterns, found by routing key."""

    def __init__(self, patterns: Sequence[tuple[str, int]], dialect: TopicDialect) -> None:
        """Prepare the patterns.

        Args:
            patterns: each with its place; places increase.
            dialect: of patterns and keys.
        """
        self._dialect = dialect
        self._separator = dialect.separator
        self._literal: dict[str, int] = {}
        self._wild: TopicTable[int] = TopicTable(dialect)
        by_word: dict[str, list[tuple[Sequence[str], int]]] = {}
        of_all: list[tuple[Sequence[str], int]] = []
        for pattern, place in patterns:
            words = pattern.split(dialect.separator)
            if not {"#", dialect.single}.intersection(words):
                self._literal.setdefault(pattern, place)
                continue
            self._wild.add(pattern, place)
            if words[0] in ("#", dialect.single):
                of_all.append((words, place))
            else:
                by_word.setdefault(words[0], []).append((words, place))
        self._others = _first_of(of_all)
        self._by_word = {
            word: _first_of(own if self._is_hidden(word) else sorted([*own, *of_all], key=lambda found: found[1]))
            for word, own in by_word.items()
        }

    def __bool__(self) -> bool:
        return bool(self._literal or self._by_word) or self._others is not None

    def whole_words(self) -> Mapping[str, int]:
        """First words whose keys all have one answer."""
        literal = {pattern.partition(self._separator)[0] for pattern in self._literal}
        return {
            word: found
            for word, found in self._by_word.items()
            if found is not None and found is not _Search.NEEDED and word not in literal
        }

    def first(self, key: str) -> int | None:
        """The lowest place of a pattern that matches a key; None where none does."""
        word = key.partition(self._separator)[0]
        found = self._by_word.get(word, self._others)
        if found is _Search.NEEDED:
            found = min(self._wild.match(key), default=None)
        elif found is self._others and self._is_hidden(word) and word not in self._by_word:
            found = None
        if self._literal and (place := self._literal.get(key)) is not None and (found is None or place < found):
            return place
        return found

    def _is_hidden(self, word: str) -> bool:
        """Patterns that begin with a wildcard do not match keys that begin with this word."""
        return bool(self._dialect.hidden) and word.startswith(self._dialect.hidden)


def _first_of(patterns: Sequence[tuple[Sequence[str], int]]) -> int | _Search | None:
    """The answer for a first word, by the patterns that can match a key with it, which have wildcards."""
    if not patterns:
        return None
    words, place = patterns[0]
    return place if words == ["#"] or list(words[1:]) == ["#"] else _Search.NEEDED
