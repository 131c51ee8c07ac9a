"""Conditions on objects, as in ``list queue where msgDepth > 100 and name ~ "orders"``: from words to a tree.

    condition := term ("or" term)*
    term      := factor ("and" factor)*
    factor    := "not" factor | "(" condition ")" | NAME | NAME operator VALUE
    operator  := = == != < <= > >= ~ !~

A name alone is true where the value is there and neither false, nor zero, nor empty. ``~`` looks for a regular
expression in a text. A word in quotes is never an operator. A pure function; knows no class: `filtering` gives names
and values their types.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator, Sequence

import attrs

from qmf.errors import CallerError
from qmf_shell.parsing.words import Word

_SIGNS = re.compile(r"(>=|<=|!=|==|!~|[=<>~()])")


class ConditionError(CallerError):
    """A condition that cannot be understood; the message says where."""


class Operator(enum.Enum):
    """How a value is compared."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    MATCH = "~"
    NO_MATCH = "!~"


_OPERATORS = {item.value: item for item in Operator} | {"==": Operator.EQ}


@attrs.frozen
class Comparison:
    """A value compared with a text that stands for another."""

    name: str
    operator: Operator
    text: str


@attrs.frozen
class Truthy:
    """A value that counts as true."""

    name: str


@attrs.frozen
class Not:
    """The opposite."""

    part: Condition


@attrs.frozen
class And:
    """All of several conditions."""

    parts: tuple[Condition, ...]


@attrs.frozen
class Or:
    """At least one of several conditions."""

    parts: tuple[Condition, ...]


Condition = Comparison | Truthy | Not | And | Or


@attrs.frozen
class Token:
    """A name, a value or a sign.

    Attributes:
        text: what it says.
        column: where it stands in the line, from 1.
        word: number of the word that it is part of.
        sign: it is an operator or a bracket.
        quoted: some of it was in quotes.
    """

    text: str
    column: int
    word: int
    sign: bool = False
    quoted: bool = False

    def says(self, keyword: str) -> bool:
        """True for a keyword, in any case of letters."""
        return not self.quoted and not self.sign and self.text.lower() == keyword


def tokenize(words: Sequence[Word]) -> list[Token]:
    """Words taken apart at operators and brackets that are not in quotes."""
    return [token for number, word in enumerate(words) for token in _of_word(word, number)]


def _of_word(word: Word, number: int) -> Iterator[Token]:
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
            yield Token(piece, column, number, sign=at % 2 == 1, quoted=in_quotes)
        column += len(piece)


def parse_condition(words: Sequence[Word]) -> tuple[Condition, int]:
    """A condition at the front of `words`, and how many words it takes.

    Raises:
        ConditionError: there is none, or it ends too early.
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

    def __init__(self, found: Sequence[Token]) -> None:
        self._tokens = found
        self._at = 0

    @property
    def current(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def used(self) -> int | None:
        """Words that are used up; None within a word."""
        if self._at == len(self._tokens):
            return self._tokens[-1].word + 1
        word = self._tokens[self._at].word
        return None if self._tokens[self._at - 1].word == word else word

    def condition(self) -> Condition:
        parts = [self._term()]
        while self._take("or"):
            parts.append(self._term())
        return parts[0] if len(parts) == 1 else Or(tuple(parts))

    def _term(self) -> Condition:
        parts = [self._factor()]
        while self._take("and"):
            parts.append(self._factor())
        return parts[0] if len(parts) == 1 else And(tuple(parts))

    def _factor(self) -> Condition:
        if self._take("not"):
            return Not(self._factor())
        if self._sign("("):
            inner = self.condition()
            if not self._sign(")"):
                raise self._wanted("a closing bracket")
            return inner
        token = self.current
        if token is None or token.sign:
            raise self._wanted("the name of a value")
        self._at += 1
        sign = self.current
        if sign is None or not sign.sign or sign.text not in _OPERATORS:
            return Truthy(token.text)
        self._at += 1
        value = self.current
        if value is None or value.sign:
            raise self._wanted(f"a value after {sign.text}")
        self._at += 1
        return Comparison(token.text, _OPERATORS[sign.text], value.text)

    def _take(self, keyword: str) -> bool:
        if self.current is not None and self.current.says(keyword):
            self._at += 1
            return True
        return False

    def _sign(self, text: str) -> bool:
        token = self.current
        if token is not None and token.sign and token.text == text:
            self._at += 1
            return True
        return False

    def _wanted(self, what: str) -> ConditionError:
        token = self.current
        where = "at the end of the condition" if token is None else f"in column {token.column}, not {token.text!r}"
        return ConditionError(f"expected {what} {where}")


def truthy_names(condition: Condition) -> Iterator[str]:
    """The names in a condition that stand alone, in order."""
    match condition:
        case Truthy(name):
            yield name
        case Not(part):
            yield from truthy_names(part)
        case And(parts) | Or(parts):
            for item in parts:
                yield from truthy_names(item)


def value_names(condition: Condition) -> Iterator[str]:
    """The names of values in a condition, in order."""
    match condition:
        case Comparison(name, _, _) | Truthy(name):
            yield name
        case Not(part):
            yield from value_names(part)
        case And(parts) | Or(parts):
            for item in parts:
                yield from value_names(item)
