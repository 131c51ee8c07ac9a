"""Predicates of queries and locate requests (QMF2.md 4.4.2), with a `re_match` that works.

A predicate sees the values of an object, or the attributes of an agent. What libqmf2 does decides the odd cases:

- A name without a value makes every comparison false, `ne` included.
- `eq` and `ne` compare text: 5 equals "5", and booleans are "True" and "False".
- The order of an integer and a float is undefined: false. A string is converted to the number that it is compared to.
- ``["and"]`` is true, ``["or"]`` false, ``["not", p, q]`` true when none is.

`re_match` finds its pattern, the second operand, anywhere in the text (`qmf.protocol.patterns`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from qmf.errors import ProtocolError
from qmf.protocol.contents import Predicate
from qmf.protocol.patterns import MAX_STEPS, Pattern, compile_pattern, search

#: Levels of conditions inside each other; the codecs let through no more either.
MAX_DEPTH = 32

#: Most steps that a pattern may take that is itself a value; each `re_match` with such a one counts with so many.
MAX_DYNAMIC_STEPS = MAX_STEPS // 10

_Check = Callable[[Mapping[str, object]], bool]
_Operand = Callable[[Mapping[str, object]], object]


def matches(predicate: Predicate, values: Mapping[str, object]) -> bool:
    """Whether values fulfil a predicate.

    Args:
        predicate: in wire form; an empty one matches everything.
        values: by name.

    Raises:
        ProtocolError: the predicate is not well formed, wherever in it the fault is.
    """
    return compile_predicate(predicate)(values)


def validate(predicate: Predicate) -> None:
    """Raise `ProtocolError` unless the predicate is well formed."""
    compile_predicate(predicate)


def compile_predicate(predicate: Predicate) -> _Check:
    """A function that applies the predicate to values: for many objects the syntax is checked once.

    Raises:
        ProtocolError: the predicate is not well formed. The function itself never raises.
    """
    return _condition(predicate, 1, _Patterns())


class _Patterns:
    """The regular expressions of one predicate: any number of quick ones are slow together."""

    def __init__(self) -> None:
        self._steps = 0

    def compile(self, pattern: str) -> Pattern:
        """Compile one more, and count it.

        Raises:
            ProtocolError: not a regular expression, or it could take too long, alone or with the others.
        """
        compiled = compile_pattern(pattern)
        self.count(compiled.steps)
        return compiled

    def count(self, steps: int) -> None:
        """Count what one may take; errors as of `compile`."""
        self._steps += steps
        if self._steps > MAX_STEPS:
            raise ProtocolError("predicate: its regular expressions together could take too long")


def _condition(node: object, depth: int, patterns: _Patterns) -> _Check:
    if depth > MAX_DEPTH:
        raise ProtocolError(f"predicate with more than {MAX_DEPTH} levels")
    if not isinstance(node, (list, tuple)):
        raise ProtocolError(f"predicate: {_short(node)} is no list")
    if not node:
        return lambda _: True
    operator, *rest = node
    if not isinstance(operator, str):
        raise ProtocolError(f"predicate: {_short(operator)} is no operator")
    if operator in _LOGIC:
        return _LOGIC[operator]([_condition(item, depth + 1, patterns) for item in rest])
    if operator in ("true", "false"):
        _expect(operator, rest, 0)
        return lambda _: operator == "true"
    if operator == "exists":
        _expect(operator, rest, 1)
        found = _operand(rest[0])
        return lambda values: found(values) is not None
    if operator == "re_match":
        _expect(operator, rest, 2)
        return _re_match(rest[0], rest[1], patterns)
    compare = _COMPARISONS.get(operator)
    if compare is None:
        raise ProtocolError(f"predicate: unknown operator {_short(operator)}")
    _expect(operator, rest, 2)
    return _comparison(compare, _operand(rest[0]), _operand(rest[1]))


def _expect(operator: str, operands: Sequence[object], count: int) -> None:
    if len(operands) != count:
        raise ProtocolError(f"predicate: {operator} takes {count} operands, not {len(operands)}")


def _short(node: object) -> str:
    return repr(node)[:40]


def _operand(node: object) -> _Operand:
    if isinstance(node, str):
        return lambda values: values.get(node)
    if isinstance(node, (list, tuple)) and len(node) == 2 and node[0] == "quote":
        literal = node[1]
        return lambda _: literal
    raise ProtocolError(f"predicate: operand {_short(node)} is neither a name nor a quoted value")


# -- logic -------------------------------------------------------------------------------------------------------------


def _and(parts: list[_Check]) -> _Check:
    return lambda values: all(part(values) for part in parts)


def _or(parts: list[_Check]) -> _Check:
    return lambda values: any(part(values) for part in parts)


def _not(parts: list[_Check]) -> _Check:
    return lambda values: not any(part(values) for part in parts)


_LOGIC = {"and": _and, "or": _or, "not": _not}


# -- comparisons -------------------------------------------------------------------------------------------------------


def _comparison(compare: Callable[[object, object], bool], left: _Operand, right: _Operand) -> _Check:
    def check(values: Mapping[str, object]) -> bool:
        one, two = left(values), right(values)
        return one is not None and two is not None and compare(one, two)

    return check


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    if isinstance(value, float):
        return repr(float(value)).removesuffix(".0")  # C++ writes whole floats like integers
    return str(value)


def _equal(one: object, two: object) -> bool:
    return _text(one) == _text(two)


def _unequal(one: object, two: object) -> bool:
    return _text(one) != _text(two)


def _ordering(compare: Callable[..., bool]) -> Callable[[object, object], bool]:
    def check(one: object, two: object) -> bool:
        pair = _comparable(one, two)
        return pair is not None and compare(*pair)

    return check


def _comparable(one: object, two: object) -> tuple[object, object] | None:
    """The two values as of one kind, or None where no order is defined."""
    kind, other = _kind(one), _kind(two)
    if kind is None or other is None:
        return None
    if kind is str and other is str:
        return _bytes(one), _bytes(two)
    if kind is str:
        one = _number(one, other)
    elif other is str:
        two = _number(two, kind)
    elif kind is not other:
        return None
    return None if one is None or two is None else (one, two)


def _kind(value: object) -> type | None:
    """What a value is ordered as; None for values without order, such as booleans."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        return int if isinstance(value, int) else float
    return str if isinstance(value, (str, bytes)) else None


def _bytes(value: object) -> bytes:
    """Text as bytes; lone surrogates stand for the bytes that they were, or else for themselves."""
    if isinstance(value, bytes):
        return value
    try:
        return str(value).encode(errors="surrogateescape")
    except UnicodeEncodeError:
        return str(value).encode(errors="surrogatepass")


def _number(value: object, kind: type) -> int | float | None:
    text = _text(value)
    if "_" in text:  # Python's own notation
        return None
    try:
        return int(text) if kind is int else float(text)
    except (ValueError, OverflowError):
        return None


def _re_match(subject: object, pattern: object, patterns: _Patterns) -> _Check:
    left, right = _operand(subject), _operand(pattern)
    if isinstance(pattern, str):
        patterns.count(MAX_DYNAMIC_STEPS)
        return lambda values: _match_dynamic(left(values), right(values))
    literal = right({})
    if not isinstance(literal, str):
        raise ProtocolError(f"predicate: re_match takes a string as pattern, not {_short(literal)}")
    compiled = patterns.compile(literal)

    def check(values: Mapping[str, object]) -> bool:
        text = left(values)
        return isinstance(text, (str, bytes)) and search(compiled, _text(text))

    return check


def _match_dynamic(text: object, pattern: object) -> bool:
    """`re_match` with a pattern that is itself a value: one that is no pattern, or a slow one, matches nothing."""
    if not isinstance(text, (str, bytes)) or not isinstance(pattern, str):
        return False
    try:
        return search(compile_pattern(pattern, MAX_DYNAMIC_STEPS), _text(text))
    except ProtocolError:
        return False


_COMPARISONS: dict[str, Callable[[object, object], bool]] = {
    "eq": _equal,
    "ne": _unequal,
    "lt": _ordering(operator.lt),
    "le": _ordering(operator.le),
    "gt": _ordering(operator.gt),
    "ge": _ordering(operator.ge),
}
