"""Expressions of the `assign` attribute: a statistic that equals a sum of others, e.g. ``enqueues - dequeues``.

The grammar is ``+ - * /`` over names, whole numbers and parentheses. It has its own small parser because statistics may
be called what Python reserves (``in - out``), and because nothing else of a language belongs into a schema. Knows no
objects and no types: names map to numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from qmf.errors import CallerError

#: Computes the value of an expression from the values of the names in it.
Evaluate = Callable[[Mapping[str, int | float]], int | float]

_TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<number>\d+)|(?P<sign>[-+*/()]))")

#: Parentheses that Python's own parser surely takes.
_MAX_NESTING = 50


class Expression:
    """One parsed expression.

    Attributes:
        text: as written in the schema.
        names: names that it uses, each once, in order of use.
        evaluate: computes it; a division by zero gives 0, a division of whole numbers rounds down.
    """

    __slots__ = ("_tokens", "evaluate", "names", "text")

    def __init__(self, text: str, where: str) -> None:
        """Parse.

        Args:
            text: the expression.
            where: what it belongs to, for the error.

        Raises:
            CallerError: not an expression; names what it belongs to and the text.
        """
        self.text = text
        parser = _Parser(text, where)
        self.evaluate: Evaluate = parser.parse()
        self.names: tuple[str, ...] = tuple(dict.fromkeys(parser.names))
        self._tokens = tuple(parser.tokens)

    def source(self, names: Mapping[str, str]) -> str | None:
        """The expression as Python source, for functions that are made from text.

        Args:
            names: what stands there for each name.

        Returns:
            the source; None where `evaluate` must be called: a division is not Python's, and Python bounds nesting.
        """
        # Numbers may be written in ways that are not Python's.
        words = [
            names[word] if kind == "name" else str(int(word)) if kind == "number" else word
            for kind, word in self._tokens
        ]
        return None if "/" in words or words.count("(") > _MAX_NESTING else " ".join(words)


class _Parser:
    """Recursive descent; `sum` and `product` are the two levels of binding."""

    def __init__(self, text: str, where: str) -> None:
        self.text = text
        self.where = where
        self.names: list[str] = []
        self.tokens = self._tokens()
        self.next = 0

    def parse(self) -> Evaluate:
        result = self._sum()
        if self.next < len(self.tokens):
            raise self._error(f"unexpected {self.tokens[self.next][1]!r}")
        return result

    def _error(self, reason: str) -> CallerError:
        return CallerError(f"{self.where}: {reason} in the expression {self.text!r}")

    def _tokens(self) -> list[tuple[str, str]]:
        tokens = []
        at = 0
        text = self.text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._error(f"unexpected {text[at:].strip()[:1]!r}")
            tokens.append((match.lastgroup or "", match.group(match.lastgroup or 0)))
            at = match.end()
        return tokens

    def _accept(self, signs: str) -> str | None:
        if self.next < len(self.tokens):
            kind, word = self.tokens[self.next]
            if kind == "sign" and word in signs:
                self.next += 1
                return word
        return None

    def _sum(self) -> Evaluate:
        left = self._product()
        while sign := self._accept("+-"):
            left = _binary(sign, left, self._product())
        return left

    def _product(self) -> Evaluate:
        left = self._operand()
        while sign := self._accept("*/"):
            left = _binary(sign, left, self._operand())
        return left

    def _operand(self) -> Evaluate:
        if self._accept("-"):
            inner = self._operand()
            return lambda values: -inner(values)
        if self._accept("("):
            inner = self._sum()
            if not self._accept(")"):
                raise self._error("no ')'")
            return inner
        if self.next == len(self.tokens):
            raise self._error("a name or a number is missing")
        kind, word = self.tokens[self.next]
        self.next += 1
        if kind == "number":
            number = int(word)
            return lambda _: number
        if kind == "name":
            self.names.append(word)
            return lambda values: values[word]
        raise self._error(f"unexpected {word!r}")


def _binary(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    if sign == "+":
        return lambda values: left(values) + right(values)
    if sign == "-":
        return lambda values: left(values) - right(values)
    if sign == "*":
        return lambda values: left(values) * right(values)
    return lambda values: _divide(left(values), right(values))


def _divide(left: int | float, right: int | float) -> int | float:
    if right == 0:
        return 0
    if isinstance(left, int) and isinstance(right, int):
        return left // right
    return left / right
