"""Parses conditions on objects, as in ``list queue where msgDepth > 100 and name ~ "orders"``, into trees.

    condition := term ("or" term)*
    term      := factor ("and" factor)*
    factor    := "not" factor | "(" condition ")" | NAME | NAME operator VALUE
    operator  := = == != < <= > >= ~ !~

A name alone is true if the value exists and is neither false, nor zero, nor empty. ``~`` searches for a regular
expression in a text. A word in quotes is never an operator.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs

from qmf.views.conditions.words import Word
from qmf_shell.parsing.conditions import And, Comparison, Condition, ConditionError, Not, Operator, Or, Truthy

_SIGNS = re.compile(r"(>=|<=|!=|==|!~|[=<>~()])")
_OPERATORS = {item.value: item for item in Operator} | {"==": Operator.EQ}


@attrs.frozen
class ConditionToken:
    """A name, a value or a sign.

    Attributes:
        text: its text, without quotes.
        column: its place in the line, from 1.
        word: number of the word that contains it.
        sign: it is an operator or a bracket.
        quoted: a part of it was in quotes.
    """

    text: str
    column: int
    word: int
    sign: bool = False
    quoted: bool = False

    def is_keyword(self, keyword: str) -> bool:
        """True if it is this keyword, in any case of letters."""
        return not self.quoted and not self.sign and self.text.lower() == keyword


def tokenize(words: Sequence[Word]) -> list[ConditionToken]:
    """Split words at operators and brackets that are not in quotes."""
    return [token for number, word in enumerate(words) for token in _of_word(word, number)]


def _of_word(word: Word, number: int) -> Iterator[ConditionToken]:
    quoted = word.end - word.start != word.plain
    pieces = _SIGNS.split(word.text[: word.plain])
    after: list[str] = []
    if quoted:
        # What was in quotes belongs to the pieces that touch it: a="x y") has the value x y, and a bracket.
        first, *after = _SIGNS.split(word.text[len(word.text) - word.tail :] if word.tail else "")
        pieces[-1] += word.text[word.plain : len(word.text) - word.tail] + first
    literal = len(pieces) - 1
    column = word.start + 1
    for at, piece in enumerate([*pieces, *after]):
        in_quotes = quoted and at == literal
        if piece or in_quotes:
            yield ConditionToken(piece, column, number, sign=at % 2 == 1, quoted=in_quotes)
        column += len(piece)


def parse_condition(words: Sequence[Word]) -> tuple[Condition, int]:
    """The condition at the beginning of `words`, and how many words it takes.

    Raises:
        ConditionError: there is no condition, or it is incomplete.
    """
    parser = _Parser(tokenize(words))
    condition = parser.condition()
    used = parser.used()
    if used is None:
        token = parser.current
        assert token is not None
        raise ConditionError(f"{token.text!r} in column {token.column} does not belong to the condition before it")
    return condition, used


class _Parser:
    """Recursive descent over tokens."""

    def __init__(self, found: Sequence[ConditionToken]) -> None:
        self._tokens = found
        self._at = 0

    @property
    def current(self) -> ConditionToken | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def used(self) -> int | None:
        """How many words are consumed; None within a word."""
        if self._at == len(self._tokens):
            return self._tokens[-1].word + 1
        word = self._tokens[self._at].word
        return None if self._tokens[self._at - 1].word == word else word

    def condition(self) -> Condition:
        parts = [self._term()]
        while self._accept("or"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _term(self) -> Condition:
        parts = [self._factor()]
        while self._accept("and"):
            parts.append(self._factor())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _factor(self) -> Condition:
        if self._accept("not"):
            return Not(self._factor())
        if self._accept_sign("("):
            inner = self.condition()
            if not self._accept_sign(")"):
                raise self._expected("a closing bracket")
            return inner
        token = self.current
        if token is None or token.sign:
            raise self._expected("the name of a value")
        self._at += 1
        sign = self.current
        if sign is None or not sign.sign or sign.text not in _OPERATORS:
            return Truthy(token.text)
        self._at += 1
        value = self.current
        if value is None or value.sign:
            raise self._expected(f"a value after {sign.text}")
        self._at += 1
        return Comparison(token.text, _OPERATORS[sign.text], value.text)

    def _accept(self, keyword: str) -> bool:
        if self.current is not None and self.current.is_keyword(keyword):
            self._at += 1
            return True
        return False

    def _accept_sign(self, text: str) -> bool:
        token = self.current
        if token is not None and token.sign and token.text == text:
            self._at += 1
            return True
        return False

    def _expected(self, what: str) -> ConditionError:
        token = self.current
        where = "at the end of the condition" if token is None else f"in column {token.column}, not {token.text!r}"
        return ConditionError(f"expected {what} {where}")
