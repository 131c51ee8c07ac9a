"""Expressions of the `assign` attribute: a statistic that equals a sum of others, e.g. ``enqueues - dequeues``.

The grammar is ``+ - * /`` over names, whole numbers and parentheses. It has a small parser of its own because names of
statistics may be keywords of Python (``in - out``), and because nothing else of a language belongs in a schema. Knows
no objects and no types: names map to numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from qmf.errors import CallerError

#: Computes the value of an expression from the values of the names in it.
Evaluate = Callable[[Mapping[str, int | float]], int | float]

_TOKEN = re.compile(r"\s*(?:(?P<name>[A-Za-z_]\w*)|(?P<number>\d+)|(?P<sign>[-+*/()]))")

#: Nested parentheses that Python's parser accepts in any case.
_MAX_NESTING = 50


class Expression:
    """One parsed expression.

    Attributes:
        text: as written in the schema.
        names: the names in it, each once, in order.
        evaluate: computes the value; a division by zero gives 0, a division of whole numbers rounds down.
    """

    __slots__ = ("_tokens", "evaluate", "names", "text")

    def __init__(self, text: str, where: str) -> None:
        """Parse.

        Args:
            text: the expression.
            where: what the expression belongs to, for errors.

        Raises:
            CallerError: it is not an expression.
        """
        self.text = text
        parser = _ExpressionParser(text, where)
        self.evaluate: Evaluate = parser.parse()
        self.names: tuple[str, ...] = tuple(dict.fromkeys(parser.names))
        self._tokens = tuple(parser.tokens)

    def source(self, names: Mapping[str, str]) -> str | None:
        """The expression as Python source, for compiled functions; `names`: the Python expression for each name.

        Returns:
            the source; None if `evaluate` must be called: divisions differ from Python's, and Python limits nesting.
        """
        # Numbers such as 007 are not Python's.
        tokens = [
            names[text] if kind == "name" else str(int(text)) if kind == "number" else text
            for kind, text in self._tokens
        ]
        return None if "/" in tokens or tokens.count("(") > _MAX_NESTING else " ".join(tokens)


class _ExpressionParser:
    """Recursive descent; `_sum` and `_product` are the two levels of precedence."""

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
            kind, text = self.tokens[self.next]
            if kind == "sign" and text in signs:
                self.next += 1
                return text
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
        kind, text = self.tokens[self.next]
        self.next += 1
        if kind == "number":
            number = int(text)
            return lambda _: number
        if kind == "name":
            self.names.append(text)
            return lambda values: values[text]
        raise self._error(f"unexpected {text!r}")


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
