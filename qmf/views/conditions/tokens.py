"""Splits the words of a condition into names, values, operators and brackets, each with its column.

What stands in quotes is never an operator, a bracket, a keyword or a name. After an operator follows a value: the rest
of the word, or the next one, up to a bracket that was opened before it: ``(name~^(a|b))``, ``label=x=y``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import attrs

from qmf.views.conditions.tree import Operator
from qmf.views.conditions.words import Word

_OPERATORS = {item.value: item for item in Operator}
_SIGN = re.compile(r">=|<=|!=|==|!~|[=<>~()]")


@attrs.frozen
class ConditionToken:
    """A name or a word, a value or a sign.

    Attributes:
        text: its text, without quotes.
        column: its place in the line, from 1.
        word: number of the word that contains it.
        sign: it is an operator or a bracket.
        quoted: a part of it was in quotes.
        value: it follows an operator.
        negative: it begins with a minus that is not in quotes.
    """

    text: str
    column: int
    word: int
    sign: bool = False
    quoted: bool = False
    value: bool = False
    negative: bool = False

    @property
    def operator(self) -> Operator | None:
        """The operator that it is, or None."""
        return _OPERATORS.get(self.text) if self.sign else None

    def is_keyword(self, keyword: str) -> bool:
        """True if it is this keyword, in any case of letters."""
        return not (self.quoted or self.sign or self.value) and self.text.lower() == keyword


def tokenize(words: Sequence[Word]) -> list[ConditionToken]:
    """The tokens of some words."""
    found: list[ConditionToken] = []
    for number, word in enumerate(words):
        after_operator = bool(found) and found[-1].operator is not None
        found += _Scanner(word, number).tokens(after_operator=after_operator)
    return found


@attrs.frozen
class _Scanner:
    """One word."""

    word: Word
    number: int

    def tokens(self, *, after_operator: bool) -> Iterator[ConditionToken]:
        text = self.word.text
        at = 0
        quoted = not self._has_quotes
        while at < len(text) or not quoted:
            sign = self._sign(at)
            quotes = not quoted and at == self.word.plain
            if after_operator and (sign in (None, "(") or (quotes and sign != ")")):
                token = self._token(at, self._value_end(at), value=True)
            elif quotes and (sign is not None or at == len(text)):
                token = self._token(at, at, value=after_operator)  # nothing is in them
            elif sign is not None:
                token = ConditionToken(sign, self._column(at), self.number, sign=True)
            else:
                token = self._token(at, next((i for i in range(at + 1, len(text)) if self._sign(i)), len(text)))
            yield token
            at += len(token.text)
            quoted |= token.quoted
            after_operator = token.operator is not None

    @property
    def _has_quotes(self) -> bool:
        return self.word.end - self.word.start != self.word.plain

    def _is_free(self, at: int) -> bool:
        """True if a character is not in quotes."""
        return at < self.word.plain or at >= len(self.word.text) - self.word.tail

    def _sign(self, at: int) -> str | None:
        match = _SIGN.match(self.word.text, at)
        if match is None or not self._is_free(at):
            return None
        if self._has_quotes and at < self.word.plain < match.end():
            match = _SIGN.fullmatch(match[0][0])  # quotes stand between its characters
        return match[0] if match is not None else None

    def _value_end(self, start: int) -> int:
        opened = 0
        for at in range(start, len(self.word.text)):
            sign = self._sign(at)
            if sign == ")" and not opened:
                return at
            opened += {"(": 1, ")": -1}.get(sign or "", 0)
        return len(self.word.text)

    def _token(self, start: int, end: int, *, value: bool = False) -> ConditionToken:
        text = self.word.text[start:end]
        quoted = self._has_quotes and start <= self.word.plain <= end
        negative = not value and text.startswith("-") and self._is_free(start)
        return ConditionToken(text, self._column(start), self.number, quoted=quoted, value=value, negative=negative)

    def _column(self, at: int) -> int:
        word = self.word
        if at > word.plain and at >= len(word.text) - word.tail:
            return word.end + 1 - (len(word.text) - at)
        return word.start + 1 + min(at, word.plain)
