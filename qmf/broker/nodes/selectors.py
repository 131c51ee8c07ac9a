"""Selectors: conditions on the properties of messages, in the language of JMS (JMS 2.0, part 3.8.1).

A selector is compiled once into functions. Values that are missing or of an unfitting type make a comparison unknown
(None); a message is selected if the whole condition is true. Names are those of application properties, of JMS header
fields (``JMSPriority``) or of AMQP's fields as Apache qpidd names them (``amqp.subject``).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from qmf.broker.nodes.message import Message
from qmf.codec.message import DEFAULT_PRIORITY
from qmf.codec.message import Message as AmqpMessage

#: A selector that begins so compares texts with numbers where they say some, as with ActiveMQ: clients of STOMP have
#: texts alone.
CONVERT = "convert_string_expressions:"

#: Characters of a selector, and depth of its parentheses, that are accepted.
MAX_LENGTH, MAX_DEPTH = 4096, 64

Selector = Callable[[Message], bool]
_Value = Callable[[AmqpMessage], Any]

_TOKEN = re.compile(
    r"\s*(?:(?P<string>'(?:[^']|'')*')"
    r"|(?P<number>(?:\d+\.\d*|\.\d+|\d+)(?:[eE][+-]?\d+)?[lLfFdD]?)"
    r"|(?P<name>[A-Za-z_$][\w$.\-]*)"
    r"|(?P<sign><>|<=|>=|[=<>+\-*/(),]))"
)
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?")
_KEYWORDS = frozenset(["AND", "OR", "NOT", "BETWEEN", "LIKE", "ESCAPE", "IN", "IS", "NULL", "TRUE", "FALSE"])


def _priority(message: AmqpMessage) -> int:
    return DEFAULT_PRIORITY if message.priority is None else message.priority


_FIELDS: Mapping[str, Callable[[AmqpMessage], object]] = {
    "JMSMessageID": lambda message: message.message_id,
    "JMSCorrelationID": lambda message: message.correlation_id,
    "JMSType": lambda message: message.subject,
    "JMSPriority": _priority,
    "JMSTimestamp": lambda message: message.creation_time,
    "JMSDeliveryMode": lambda message: "PERSISTENT" if message.durable else "NON_PERSISTENT",
    "JMSRedelivered": lambda message: message.delivery_count > 0,
    "amqp.message_id": lambda message: message.message_id,
    "amqp.correlation_id": lambda message: message.correlation_id,
    "amqp.subject": lambda message: message.subject,
    "amqp.to": lambda message: message.to,
    "amqp.reply_to": lambda message: message.reply_to,
    "amqp.content_type": lambda message: message.content_type,
    "amqp.priority": _priority,
    "amqp.durable": lambda message: bool(message.durable),
    "amqp.redelivered": lambda message: message.delivery_count > 0,
    "amqp.creation_time": lambda message: message.creation_time,
}


class SelectorError(ValueError):
    """A text is not a selector; the message names the place."""


def compile_selector(text: str) -> Selector:
    """The selector that a text describes.

    Raises:
        SelectorError: the text is not a selector.
    """
    if len(text) > MAX_LENGTH:
        raise SelectorError(f"a selector may have {MAX_LENGTH} characters, this one has {len(text)}")
    rest = text.removeprefix(CONVERT)
    condition = _Parser(rest, convert=rest != text).parse()
    return lambda message: condition(message.fields) is True


class _Parser:
    """Recursive descent: one method for each level of precedence, lowest first."""

    def __init__(self, text: str, *, convert: bool = False) -> None:
        self._text = text
        self._convert = convert
        self._tokens: list[tuple[str, str, int]] = []
        pos = 0
        while text[pos:].strip():
            match = _TOKEN.match(text, pos)
            if match is None or match.lastgroup is None:
                start = len(text) - len(text[pos:].lstrip())
                raise SelectorError(f"selector {text!r}, character {start + 1}: {text[start]!r} is not expected")
            kind, value = match.lastgroup, match[match.lastgroup]
            if kind == "name" and value.upper() in _KEYWORDS:
                kind, value = "keyword", value.upper()
            self._tokens.append((kind, value, match.start(match.lastgroup)))
            pos = match.end()
        self._next = 0
        self._depth = 0

    def parse(self) -> _Value:
        condition = self._or()
        if self._next < len(self._tokens):
            raise self._error("the end")
        return condition

    def _or(self) -> _Value:
        left = self._and()
        while self._accept("keyword", "OR"):
            left = _either(left, self._and())
        return left

    def _and(self) -> _Value:
        left = self._not()
        while self._accept("keyword", "AND"):
            left = _both(left, self._not())
        return left

    def _not(self) -> _Value:
        if self._accept("keyword", "NOT"):
            self._enter()
            inner = self._not()
            self._depth -= 1
            return _negate(inner)
        return self._comparison()

    def _comparison(self) -> _Value:
        left = self._sum()
        kind, value, _ = self._peek()
        if kind == "sign" and value in _COMPARISONS:
            self._next += 1
            return self._compare(value, left, self._sum())
        if self._accept("keyword", "IS"):
            negated = self._accept("keyword", "NOT")
            self._expect("keyword", "NULL")
            return lambda message: (left(message) is None) is not negated
        negated = self._accept("keyword", "NOT")
        if self._accept("keyword", "BETWEEN"):
            low = self._sum()
            self._expect("keyword", "AND")
            condition = _both(self._compare(">=", left, low), self._compare("<=", left, self._sum()))
        elif self._accept("keyword", "IN"):
            condition = _contains(left, self._strings())
        elif self._accept("keyword", "LIKE"):
            pattern = self._string()
            escape = self._string() if self._accept("keyword", "ESCAPE") else None
            if escape is not None and len(escape) != 1:
                raise SelectorError(f"selector {self._text!r}: ESCAPE needs one character, not {escape!r}")
            condition = _like(left, pattern, escape)
        elif negated:
            raise self._error("BETWEEN, IN or LIKE")
        else:
            return left
        return _negate(condition) if negated else condition

    def _compare(self, sign: str, left: _Value, right: _Value) -> _Value:
        if self._convert:
            left, right = _comparable(left, right), _comparable(right, left)
        return _compare(sign, left, right)

    def _sum(self) -> _Value:
        left = self._product()
        while self._peek()[:2] in (("sign", "+"), ("sign", "-")):
            left = _calculate(self._take(), left, self._product())
        return left

    def _product(self) -> _Value:
        left = self._factor()
        while self._peek()[:2] in (("sign", "*"), ("sign", "/")):
            left = _calculate(self._take(), left, self._factor())
        return left

    def _factor(self) -> _Value:
        kind, value, _ = self._peek()
        if kind == "sign" and value in "+-":
            self._next += 1
            self._enter()
            inner = self._factor()
            self._depth -= 1
            return _calculate("-", lambda _: 0, inner) if value == "-" else inner
        if self._accept("sign", "("):
            self._enter()
            inner = self._or()
            self._depth -= 1
            self._expect("sign", ")")
            return inner
        if kind not in ("string", "number", "name", "keyword") or (
            kind == "keyword" and value not in ("TRUE", "FALSE")
        ):
            raise self._error("a value")
        self._next += 1
        if kind == "name":
            return _property_reader(value)
        constant = _constant(kind, value)
        return lambda _: constant

    def _strings(self) -> frozenset[str]:
        self._expect("sign", "(")
        found = [self._string()]
        while self._accept("sign", ","):
            found.append(self._string())
        self._expect("sign", ")")
        return frozenset(found)

    def _string(self) -> str:
        kind, value, _ = self._peek()
        if kind != "string":
            raise self._error("a string")
        self._next += 1
        return value[1:-1].replace("''", "'")

    def _enter(self) -> None:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise SelectorError(f"a selector may be nested {MAX_DEPTH} deep")

    def _peek(self) -> tuple[str, str, int]:
        return self._tokens[self._next] if self._next < len(self._tokens) else ("end", "", len(self._text))

    def _take(self) -> str:
        self._next += 1
        return self._tokens[self._next - 1][1]

    def _accept(self, kind: str, value: str) -> bool:
        if self._peek()[:2] == (kind, value):
            self._next += 1
            return True
        return False

    def _expect(self, kind: str, value: str) -> None:
        if not self._accept(kind, value):
            raise self._error(value)

    def _error(self, expected: str) -> SelectorError:
        kind, value, pos = self._peek()
        found = "the end" if kind == "end" else repr(value)
        return SelectorError(f"selector {self._text!r}, character {pos + 1}: expected {expected}, found {found}")


def _constant(kind: str, text: str) -> object:
    if kind == "string":
        return text[1:-1].replace("''", "'")
    if kind == "keyword":
        return text == "TRUE"
    digits = text.rstrip("lLfFdD")
    return int(digits) if digits.isdigit() else float(digits)


def _property_reader(name: str) -> _Value:
    field = _FIELDS.get(name)
    return field if field is not None else lambda message: message.application_properties.get(name)


def _either(left: _Value, right: _Value) -> _Value:
    def condition(message: AmqpMessage) -> bool | None:
        one = left(message)
        if one is True:
            return True
        two = right(message)
        return True if two is True else False if one is False and two is False else None

    return condition


def _both(left: _Value, right: _Value) -> _Value:
    def condition(message: AmqpMessage) -> bool | None:
        one = left(message)
        if one is False:
            return False
        two = right(message)
        return False if two is False else True if one is True and two is True else None

    return condition


def _negate(inner: _Value) -> _Value:
    def condition(message: AmqpMessage) -> bool | None:
        value = inner(message)
        return not value if isinstance(value, bool) else None

    return condition


_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _comparable(value: _Value, other: _Value) -> _Value:
    """A value: the number that a text says, where it is compared with a number."""

    def convert(message: AmqpMessage) -> object:
        found = value(message)
        if isinstance(found, str) and _NUMBER.fullmatch(found) and _is_number(other(message)):
            return int(found) if found.isdigit() else float(found)
        return found

    return convert


def _compare(sign: str, left: _Value, right: _Value) -> _Value:
    compare = _COMPARISONS[sign]
    ordered = sign not in ("=", "<>")

    def condition(message: AmqpMessage) -> bool | None:
        one, two = left(message), right(message)
        if _is_number(one) and _is_number(two):
            return compare(one, two)
        if ordered or type(one) is not type(two) or one is None:
            return None
        return compare(one, two)

    return condition


def _calculate(sign: str, left: _Value, right: _Value) -> _Value:
    calculate: Callable[[Any, Any], Any] = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": operator.truediv,
    }[sign]

    def value(message: AmqpMessage) -> object:
        one, two = left(message), right(message)
        if not _is_number(one) or not _is_number(two) or (sign == "/" and two == 0):
            return None
        try:
            return calculate(one, two)
        except OverflowError:
            return None

    return value


def _contains(left: _Value, values: frozenset[str]) -> _Value:
    def condition(message: AmqpMessage) -> bool | None:
        value = left(message)
        return value in values if isinstance(value, str) else None

    return condition


def _like(left: _Value, pattern: str, escape: str | None) -> _Value:
    parts = _pattern(pattern, escape)

    def condition(message: AmqpMessage) -> bool | None:
        value = left(message)
        return _matches(parts, value) if isinstance(value, str) else None

    return condition


#: What stands for any character, and for any number of them, in a pattern.
_ONE, _MANY = object(), object()


def _pattern(text: str, escape: str | None) -> list[object]:
    parts: list[object] = []
    chars = iter(text)
    for char in chars:
        if char == escape:
            parts.append(next(chars, escape))
        else:
            parts.append({"_": _ONE, "%": _MANY}.get(char, char))
    return parts


def _matches(parts: list[object], text: str) -> bool:
    """Match greedily, going back to the last `_MANY` only: at most the product of both lengths in steps."""
    part = pos = 0
    retry_part = retry_pos = -1
    while pos < len(text):
        if part < len(parts) and parts[part] is _MANY:
            retry_part, retry_pos = part, pos
            part += 1
        elif part < len(parts) and (parts[part] is _ONE or parts[part] == text[pos]):
            part += 1
            pos += 1
        elif retry_part >= 0:
            retry_pos += 1
            part, pos = retry_part + 1, retry_pos
        else:
            return False
    return all(item is _MANY for item in parts[part:])
