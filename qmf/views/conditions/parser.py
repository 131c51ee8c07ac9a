"""Parses conditions, as in ``orders msgDepth > 100 and name ~ "^eu"``, into trees.

    condition := term ("or" term)*
    term      := factor (["and"] factor)*
    factor    := "not" factor | "-" WORD | "(" condition ")" | "has" NAME | NAME operator VALUE | WORD
    operator  := = == != < <= > >= ~ !~

A word alone is searched for; what an operator follows is always the name of a value. Words are as in `words`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

from qmf.views.conditions.tokens import ConditionToken, tokenize
from qmf.views.conditions.tree import KEYWORDS, And, Comparison, Condition, ConditionError, Has, Not, Or, Search
from qmf.views.conditions.words import LineError, Word, split_line

#: Most brackets and negations inside each other.
MAX_DEPTH = 30


def parse_condition(text: str) -> Condition | None:
    """The condition that a text is; None if it is blank, which means everything.

    Raises:
        ConditionError: it is not a condition.
    """
    try:
        words = split_line(text)
    except LineError as error:
        raise ConditionError(error.reason, error.column) from None
    return parse_words(words)[0] if words else None


def parse_words(
    words: Sequence[Word], *, ends: Callable[[Word], object] = lambda _: False, alone: bool = True
) -> tuple[Condition, int]:
    """The condition at the beginning of `words`, and how many of them it takes.

    Args:
        words: of a line.
        ends: tells whether a word, outside of comparisons, ends the condition.
        alone: only such a word ends it. False if anything may follow it: then ``and`` must be written, outside of
            brackets, because a factor without it ends the condition.

    Raises:
        ConditionError: there is no condition, or it is incomplete.
    """

    def inside(token: ConditionToken) -> bool:
        return token.value or token.sign or not ends(words[token.word])

    parser = _Parser(list(itertools.takewhile(inside, tokenize(words))))
    condition = parser.condition(juxtaposed=alone)
    left = parser.current
    if left is None:
        return condition, parser.before.word + 1
    if alone or left.word == parser.before.word:
        raise ConditionError(
            f"{left.text!r} in column {left.column} does not belong to the condition before it", left.column
        )
    return condition, left.word


class _Parser:
    """Recursive descent over tokens."""

    def __init__(self, found: Sequence[ConditionToken]) -> None:
        self._tokens = found
        self._at = 0
        self._depth = 0

    @property
    def current(self) -> ConditionToken | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    @property
    def before(self) -> ConditionToken:
        return self._tokens[self._at - 1]

    def condition(self, *, juxtaposed: bool = True) -> Condition:
        parts = [self._term(juxtaposed)]
        while self._accept("or"):
            parts.append(self._term(juxtaposed))
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _term(self, juxtaposed: bool) -> Condition:
        parts = [self._factor()]
        while self._accept("and") or (juxtaposed and self._begins_factor()):
            parts.append(self._factor())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _begins_factor(self) -> bool:
        token = self.current
        return token is not None and not token.is_keyword("or") and (not token.sign or token.text == "(")

    def _factor(self) -> Condition:
        token = self.current
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise ConditionError(f"more than {MAX_DEPTH} brackets and negations inside each other")
        try:
            if self._accept("not"):
                return Not(self._factor())
            if token is not None and token.sign and token.text == "(":
                return self._bracket()
            return self._leaf()
        finally:
            self._depth -= 1

    def _bracket(self) -> Condition:
        self._at += 1
        inner = self.condition()
        token = self.current
        if token is None or not token.sign or token.text != ")":
            raise self._error_expecting("a closing bracket")
        self._at += 1
        return inner

    def _leaf(self) -> Condition:
        if self._accept("has"):
            name = self.current
            if name is None or name.sign or name.quoted or name.text.lower() in KEYWORDS:
                raise self._error_expecting("the name of a value after has")
            self._at += 1
            return Has(name.text)
        token = self.current
        if token is None or token.sign or any(token.is_keyword(word) for word in KEYWORDS):
            raise self._error_expecting("a word or the name of a value")
        self._at += 1
        sign = self.current
        if sign is not None and sign.operator is not None:
            return self._comparison(token, sign)
        if token.negative and len(token.text) > 1:
            return Not(Search(token.text[1:]))
        return Search(token.text)

    def _comparison(self, name: ConditionToken, sign: ConditionToken) -> Condition:
        if name.quoted:
            reason = f"{name.text!r} in column {name.column} is in quotes, so it is a word and cannot be compared"
            raise ConditionError(reason, name.column)
        assert sign.operator is not None
        self._at += 1
        value = self.current
        if value is None or not value.value:
            raise self._error_expecting(f"a value after {sign.text}")
        self._at += 1
        return Comparison(name.text, sign.operator, value.text)

    def _accept(self, keyword: str) -> bool:
        if self.current is not None and self.current.is_keyword(keyword):
            self._at += 1
            return True
        return False

    def _error_expecting(self, what: str) -> ConditionError:
        token = self.current
        if token is None:
            return ConditionError(f"expected {what} at the end of the condition")
        return ConditionError(f"expected {what} in column {token.column}, not {token.text!r}", token.column)
