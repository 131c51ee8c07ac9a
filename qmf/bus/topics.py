"""Topic keys: which binding keys match a routing key.

A key is a list of words separated by dots; an empty key is one empty word. In a binding key, ``*`` matches exactly one
word and ``#`` zero or more. Both brokers of this project, the embedded one and `MemoryExchange`, route with this table.
MQTT has another dialect: words are separated by slashes, ``+`` matches one, and keys that begin with ``$`` are hidden
from bindings that begin with a wildcard.

Bindings are kept in a trie of words, so that the cost of routing depends on the length of the key and the number of
wildcards on its path, not on the number of bindings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, TypeVar

import attrs

T = TypeVar("T", bound=Hashable)

#: Routing keys whose values are cached, and the longest of them, in characters.
MAX_CACHED = 1_000
MAX_CACHED_KEY = 200


@attrs.frozen
class TopicDialect:
    """How keys are written.

    Attributes:
        separator: between words.
        single: matches one word.
        hidden: keys that begin so are matched by no wildcard in the first word; empty for none.
    """

    separator: str = "."
    single: str = "*"
    hidden: str = ""


#: The dialects of AMQP's topic exchanges, and of MQTT.
AMQP_TOPICS = TopicDialect()
MQTT_TOPICS = TopicDialect("/", "+", "$")


#: Name of the exchange that clients of MQTT use.
MQTT_EXCHANGE = "mqtt"


def covers(topic_filter: str, other: str) -> bool:
    """True if a filter of MQTT matches all topics that another filter matches, or a single topic."""
    words, others = topic_filter.split("/"), other.split("/")
    if other.startswith("$") and words[0] in ("+", "#"):
        return False
    for place, word in enumerate(words):
        if word == "#":
            return True
        if place == len(others) or others[place] == "#" or word not in ("+", others[place]):
            return False
    return len(words) == len(others)


class _TrieNode(Generic[T]):
    __slots__ = ("children", "is_hash", "values")

    def __init__(self, word: str = "") -> None:
        #: The node is that of ``#``, which matches further words.
        self.is_hash = word == "#"
        self.children: dict[str, _TrieNode[T]] = {}
        #: A dictionary instead of a set, so that the order is that of the bindings, the same in every run.
        self.values: dict[T, None] = {}


class TopicTable(Generic[T]):
    """Values under binding keys, found by routing key."""

    def __init__(self, dialect: TopicDialect = AMQP_TOPICS) -> None:
        """Make an empty table; `dialect` is that of its keys."""
        self._separator, self._single, self._hidden = dialect.separator, dialect.single, dialect.hidden
        self._root: _TrieNode[T] = _TrieNode()
        #: Results by routing key, until the bindings change: nearly all messages have one of few routing keys.
        self._cache: dict[str, Sequence[T]] = {}

    def add(self, key: str, value: T) -> None:
        """Bind `value` with the binding key `key`; binding it twice is the same as once."""
        self._cache.clear()
        node = self._root
        for word in key.split(self._separator):
            child = node.children.get(word)
            if child is None:
                child = node.children[word] = _TrieNode(word)
            node = child
        node.values[value] = None

    def remove(self, key: str, value: T) -> None:
        """Remove a binding. Does nothing when there is none."""
        self._cache.clear()
        path = [self._root]
        words = key.split(self._separator)
        for word in words:
            child = path[-1].children.get(word)
            if child is None:
                return
            path.append(child)
        path[-1].values.pop(value, None)
        for word in reversed(words):
            node = path.pop()
            if node.values or node.children:
                return
            del path[-1].children[word]

    def match(self, key: str) -> Sequence[T]:
        """Each value with a binding key that matches the routing key `key`, once."""
        values = self._cache.get(key)
        if values is None:
            values = self._search(key)
            if len(self._cache) >= MAX_CACHED:
                self._cache.clear()
            if len(key) <= MAX_CACHED_KEY:
                self._cache[key] = values
        return values

    def _search(self, key: str) -> list[T]:
        words = key.split(self._separator)
        found: dict[T, None] = {}
        # Pairs of node and position in the words. Without this set, binding keys with many `#` and long routing keys,
        # both of which are chosen by peers, would take exponential time.
        seen: set[tuple[int, int]] = set()
        todo: list[tuple[_TrieNode[T], int]] = [(self._root, 0)]
        while todo:
            node, position = todo.pop()
            if (state := (id(node), position)) in seen:
                continue
            seen.add(state)
            if position == len(words):
                found.update(node.values)
            todo.extend(self._steps(node, words, position))
        return list(found)

    def _steps(self, node: _TrieNode[T], words: list[str], position: int) -> Iterator[tuple[_TrieNode[T], int]]:
        hidden = not position and self._hidden and words[0].startswith(self._hidden)
        wild = node.children.get("#")
        if wild is not None and not hidden:
            yield wild, position
        if position == len(words):
            return
        if node.is_hash:
            yield node, position + 1
        # In a routing key, the words `*` and `#` are no wildcards.
        for word in (words[position],) if hidden else (self._single, words[position]):
            child = node.children.get(word)
            if child is not None and not child.is_hash:
                yield child, position + 1
