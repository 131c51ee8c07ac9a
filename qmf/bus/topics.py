"""Topic keys: which binding keys match a routing key.

A key is a list of words separated by dots; an empty key is one empty word. In a binding key ``*`` stands for exactly
one word and ``#`` for zero or more. Both brokers of this project (the embedded one and the fake) route with this
table.

Bindings are kept in a trie of words, so that the cost of routing follows the length of the key and the number of
wildcards met on the way, not the number of bindings.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from typing import Generic, TypeVar

T = TypeVar("T", bound=Hashable)

#: Routing keys whose values are remembered, and the longest of them, in characters.
REMEMBERED = 1_000
LONGEST = 200


class _Node(Generic[T]):
    __slots__ = ("children", "many", "values")

    def __init__(self, word: str = "") -> None:
        #: This node stands for ``#``: it takes further words and stays.
        self.many = word == "#"
        self.children: dict[str, _Node[T]] = {}
        #: Dictionary instead of set: routing visits in the order of binding, on every run the same.
        self.values: dict[T, None] = {}


class TopicTable(Generic[T]):
    """Values under binding keys, found by routing key."""

    def __init__(self) -> None:
        self._root: _Node[T] = _Node()
        #: What was found before, since the last change of the bindings: few routing keys carry nearly all messages.
        self._found: dict[str, Sequence[T]] = {}

    def add(self, key: str, value: T) -> None:
        """Bind `value` with the binding key `key`; binding it twice is the same as once."""
        self._found.clear()
        node = self._root
        for word in key.split("."):
            child = node.children.get(word)
            if child is None:
                child = node.children[word] = _Node(word)
            node = child
        node.values[value] = None

    def remove(self, key: str, value: T) -> None:
        """Take a binding away; does nothing when it is not there."""
        self._found.clear()
        path = [self._root]
        words = key.split(".")
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
        values = self._found.get(key)
        if values is None:
            values = self._search(key)
            if len(self._found) >= REMEMBERED:
                self._found.clear()
            if len(key) <= LONGEST:
                self._found[key] = values
        return values

    def _search(self, key: str) -> list[T]:
        words = key.split(".")
        found: dict[T, None] = {}
        # States are (node, position in the words). Without this set, keys of many `#` against long routing keys would
        # take exponential time: a peer chooses both.
        seen: set[tuple[int, int]] = set()
        todo: list[tuple[_Node[T], int]] = [(self._root, 0)]
        while todo:
            node, position = todo.pop()
            if (state := (id(node), position)) in seen:
                continue
            seen.add(state)
            if position == len(words):
                found.update(node.values)
            todo.extend(self._steps(node, words, position))
        return list(found)

    @staticmethod
    def _steps(node: _Node[T], words: list[str], position: int) -> Iterator[tuple[_Node[T], int]]:
        wild = node.children.get("#")
        if wild is not None:
            yield wild, position
        if position == len(words):
            return
        if node.many:
            yield node, position + 1
        # A routing key may itself hold the words `*` and `#`: no wildcards there.
        for word in ("*", words[position]):
            child = node.children.get(word)
            if child is not None and not child.many:
                yield child, position + 1
