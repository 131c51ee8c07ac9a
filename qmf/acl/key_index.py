"""The first of many patterns of routing keys that matches a key, at a cost that does not grow with their number.

Patterns without wildcards are looked up as they are. Those with wildcards are told apart by the first word of the
key: the first one that matches all keys with that word, as ``stock.#`` does, is the answer if none stands before it,
or if all those name other words, and the key has none of these. Otherwise patterns are looked up by shape: those with
wildcards at the same places, as ``*.uk.#`` and ``*.fr.#``, are one table of their other words. Source: "Packet
Classification using Tuple Space Search", Srinivasan, Suri, Varghese, 1999. Shapes come in the order of their first
patterns: the search ends where later ones can't stand before what was found. A table of their words serves patterns
like ``#.uk.#``. Others with several ``#``, and those of rare shapes if there are many, are in a trie of words.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from operator import itemgetter
from typing import Self

import attrs

from qmf.bus.topics import TopicDialect, TopicTable

#: Shapes that are looked up one after the other; looking up more would cost more than the trie.
MAX_SHAPES = 40

#: Stands for the place of no pattern.
_NOWHERE = sys.maxsize

#: Where the words of a pattern are that are no wildcards: from the beginning, and behind a ``#`` from the end, which is
#: negative; the number of words before the ``#``; the number behind it, or -1 without one; a wildcard comes first.
_Form = tuple[tuple[int, ...], int, int, bool]


@attrs.frozen
class _Start:
    """What is known of keys by their first word.

    Attributes:
        place: of the first pattern that matches all of them; None if there is none.
        is_first: no pattern that can match some of them stands before it.
        needs_words: all that do name words, behind their first one or behind a wildcard.
    """

    place: int | None
    is_first: bool
    needs_words: bool

    @classmethod
    def of(cls, *patterns: _Firsts) -> Self:
        """By the patterns that can match keys with that word, in groups."""
        whole = min((group.whole for group in patterns), default=math.inf)
        return cls(
            None if whole == math.inf else int(whole),
            all(group.any >= whole for group in patterns),
            all(group.nameless == math.inf or group.nameless > whole for group in patterns),
        )


@attrs.define
class _Firsts:
    """The lowest places of some patterns: of any, of those that match all keys with their first word, and of the others
    that name no word behind it; infinite if there are none.
    """

    any: float = math.inf
    whole: float = math.inf
    nameless: float = math.inf

    def add(self, words: Sequence[str], place: int, single: str) -> None:
        """Take another pattern, by its words; places increase."""
        self.any = min(self.any, place)
        if words == ["#"] or words[1:] == ["#"]:
            self.whole = min(self.whole, place)
        elif all(word in ("#", single) for word in words[1:]):
            self.nameless = min(self.nameless, place)


@attrs.frozen
class _Shape:
    """Patterns that have their wildcards at the same places.

    Attributes:
        first: the lowest place of them.
        least: words of a key that they match, at least.
        exact: that is the number of words.
        wild: they begin with a wildcard, which hidden words don't match.
        words: takes the words of a key that are no wildcards in the patterns.
        places: by these words, the lowest one.
    """

    first: int
    least: int
    exact: bool
    wild: bool
    words: Callable[[Sequence[str]], object]
    places: dict[object, int] = attrs.field(factory=dict)


#: No pattern can match.
_NOTHING = _Start.of()


class KeyIndex:
    """Places of patterns, found by routing key."""

    def __init__(
        self, patterns: Sequence[tuple[str, int]], dialect: TopicDialect, *, max_shapes: int = MAX_SHAPES
    ) -> None:
        """Prepare the patterns.

        Args:
            patterns: each with its place; places increase.
            dialect: of patterns and keys.
            max_shapes: that are looked up; patterns of others are in the trie.
        """
        self._dialect = dialect
        self._separator = dialect.separator
        #: Some words are matched by no wildcard.
        self._hides = bool(dialect.hidden)
        #: Words of patterns with wildcards, but for first ones.
        self._named: set[str] = set()
        self._literal: dict[str, int] = {}
        by_word: defaultdict[str, _Firsts] = defaultdict(_Firsts)
        of_all = _Firsts()
        wild: list[tuple[Sequence[str], int]] = []
        for pattern, place in patterns:
            words = pattern.split(dialect.separator)
            if not {"#", dialect.single}.intersection(words):
                self._literal.setdefault(pattern, place)
                continue
            wild.append((words, place))
            self._named.update(word for word in words[1:] if word not in ("#", dialect.single))
            firsts = of_all if words[0] in ("#", dialect.single) else by_word[words[0]]
            firsts.add(words, place, dialect.single)
        self._others = _Start.of(of_all)
        self._by_word = {
            word: _Start.of(own) if self._is_hidden(word) else _Start.of(own, of_all) for word, own in by_word.items()
        }
        #: Of patterns with one word between two ``#``.
        self._anywhere: dict[str, int] = {}
        self._rest: TopicTable[int] = TopicTable(dialect)
        #: The lowest place in the trie.
        self._first_of_rest = _NOWHERE
        self._shapes = self._make_shapes(wild, max_shapes)

    def __bool__(self) -> bool:
        return bool(self._literal or self._by_word or self._shapes or self._anywhere or self._first_of_rest < _NOWHERE)

    def whole_words(self) -> Mapping[str, int]:
        """First words whose keys all have one answer."""
        literal = {pattern.partition(self._separator)[0] for pattern in self._literal}
        return {
            word: found.place
            for word, found in self._by_word.items()
            if found.place is not None and found.is_first and word not in literal
        }

    def first(self, key: str) -> int | None:
        """The lowest place of a pattern that matches a key; None where none does."""
        words = key.split(self._separator)
        start = self._by_word.get(words[0], self._others)
        if self._hides and start is self._others and self._is_hidden(words[0]):
            start = _NOTHING
        if start.is_first or (start.needs_words and self._named.isdisjoint(words)):
            found = start.place
        else:
            found = self._search(words)
        if self._literal and (place := self._literal.get(key)) is not None and (found is None or place < found):
            return place
        return found

    def _search(self, words: Sequence[str]) -> int | None:
        hidden = self._hides and self._is_hidden(words[0])
        found = self._search_shapes(words, hidden=hidden)
        if self._anywhere and not hidden:
            found = min((found, *(self._anywhere.get(word, _NOWHERE) for word in words)))
        if self._first_of_rest < found:
            found = min((found, *self._rest.match(self._separator.join(words))))
        return None if found == _NOWHERE else found

    def _search_shapes(self, words: Sequence[str], *, hidden: bool) -> int:
        count = len(words)
        found = _NOWHERE
        for shape in self._shapes:
            if found < shape.first:
                break
            if count < shape.least or (shape.exact and count != shape.least) or (hidden and shape.wild):
                continue
            place = shape.places.get(shape.words(words), _NOWHERE)
            if place < found:
                found = place
        return found

    def _make_shapes(self, patterns: Sequence[tuple[Sequence[str], int]], most: int) -> Sequence[_Shape]:
        """Tables of the patterns, which come in their order; the trie gets those that are in none."""
        forms = [_form(words, self._dialect.single) for words, _ in patterns]
        kept = {form for form, _ in Counter(form for form in forms if form is not None).most_common(most)}
        shapes: dict[_Form, _Shape] = {}
        for form, (words, place) in zip(forms, patterns, strict=True):
            if len(words) == 3 and words[0] == words[2] == "#" and words[1] not in ("#", self._dialect.single):
                self._anywhere.setdefault(words[1], place)
                continue
            if form is None or form not in kept:
                self._rest.add(self._separator.join(words), place)
                self._first_of_rest = min(self._first_of_rest, place)
                continue
            shape = shapes.get(form)
            if shape is None:
                named, before, behind, wild = form
                getter = itemgetter(*named) if named else _no_words
                shape = shapes[form] = _Shape(place, before + max(behind, 0), behind < 0, wild, getter)
            shape.places.setdefault(shape.words(words), place)
        return list(shapes.values())

    def _is_hidden(self, word: str) -> bool:
        """Patterns that begin with a wildcard do not match keys that begin with this word."""
        return bool(self._dialect.hidden) and word.startswith(self._dialect.hidden)


def _form(words: Sequence[str], single: str) -> _Form | None:
    """Where the wildcards of a pattern are; None if there are several ``#``."""
    wild = words[0] in ("#", single)
    if (hashes := words.count("#")) > 1:
        return None
    before = words.index("#") if hashes else len(words)
    behind = len(words) - before - 1
    named = [place for place, word in enumerate(words[:before]) if word != single]
    named += [place - behind for place, word in enumerate(words[before + 1 :]) if word != single]
    return tuple(named), before, behind, wild


def _no_words(_words: Sequence[str]) -> object:
    """Of patterns that have wildcards alone."""
    return None
