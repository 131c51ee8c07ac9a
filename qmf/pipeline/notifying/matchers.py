"""Matchers of labels, written as Alertmanager's: ``severity=~"crit|emerg"``. Pure.

The operators are ``=``, ``!=``, ``=~`` and ``!~``; expressions must match the whole value. A label that an alert
doesn't have is the same as an empty one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.correlate.alerts import NAME_LABEL

_MATCHER = re.compile(r"\s*([A-Za-z_][\w.:-]*)\s*(=~|!~|!=|=)\s*(.*?)\s*", re.DOTALL | re.ASCII)
_ESCAPES = {"n": "\n", '"': '"', "\\": "\\"}


@attrs.frozen
class Matcher:
    """A condition on one label: its value is a text, or matches a regular expression as a whole; or it is not so."""

    name: str
    value: str
    is_regex: bool = False
    is_equal: bool = True
    _pattern: re.Pattern[str] | None = attrs.field(init=False, eq=False, repr=False)

    @_pattern.default
    def _compile(self) -> re.Pattern[str] | None:
        return re.compile(self.value) if self.is_regex else None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """True where the labels fulfil the condition."""
        value = labels.get(self.name, "")
        found = self._pattern.fullmatch(value) is not None if self._pattern is not None else value == self.value
        return found is self.is_equal

    def to_json(self) -> dict[str, Any]:
        """As in Alertmanager's API."""
        return {"name": self.name, "value": self.value, "isRegex": self.is_regex, "isEqual": self.is_equal}

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Matcher:
        """The reverse of `to_json`; raises `KeyError`, `TypeError` or `ValueError` for what is none."""
        name, value = content["name"], content["value"]
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError("name and value of a matcher are texts")
        try:
            return cls(name, value, bool(content.get("isRegex", False)), bool(content.get("isEqual", True)))
        except re.error as error:
            raise ValueError(f"{value!r} is not a regular expression: {error}") from error

    def __str__(self) -> str:
        operator = {(False, True): "=", (False, False): "!=", (True, True): "=~", (True, False): "!~"}
        text = self.value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'{self.name}{operator[self.is_regex, self.is_equal]}"{text}"'


def parse_matcher(text: str) -> Matcher:
    """Read one matcher; the value may be in double quotes. Raises `ValueError`: it is none; the message says why."""
    found = _MATCHER.fullmatch(text)
    if found is None:
        raise ValueError(f'{text!r} is not a matcher such as severity="crit" or agent=~"qmf:host:.*"')
    name, operator, value = found.groups()
    try:
        return Matcher(name, _unquote(value), operator.endswith("~"), not operator.startswith("!"))
    except re.error as error:
        raise ValueError(f"{text!r}: not a regular expression: {error}") from error


def parse_matchers(texts: Iterable[str]) -> tuple[Matcher, ...]:
    """Read several matchers, as of `parse_matcher`; all must match."""
    return tuple(map(parse_matcher, texts))


def parse_query(texts: Sequence[str]) -> tuple[Matcher, ...]:
    """Matchers of a command line, where the first may be the name of an alert alone, as for Alertmanager's `amtool`."""
    if texts and not _MATCHER.fullmatch(texts[0]) and not set(texts[0]) & set('="'):
        return (Matcher(NAME_LABEL, texts[0]), *parse_matchers(texts[1:]))
    return parse_matchers(texts)


def all_match(matchers: Iterable[Matcher], labels: Mapping[str, str]) -> bool:
    """True where the labels fulfil all conditions."""
    return all(matcher.matches(labels) for matcher in matchers)


def _unquote(text: str) -> str:
    if not text.startswith('"'):
        if '"' in text:
            raise ValueError(f"{text!r}: a value with quotes must be in quotes itself")
        return text
    if len(text) < 2 or not text.endswith('"'):
        raise ValueError(f"{text!r}: the quotes are not closed")
    found: list[str] = []
    rest = iter(text[1:-1])
    for sign in rest:
        if sign == '"':
            raise ValueError(f'{text!r}: a quote inside must be written \\"')
        if sign != "\\":
            found.append(sign)
            continue
        following = next(rest, None)
        if following is None:
            raise ValueError(f"{text!r}: the quotes are not closed")
        found.append(_ESCAPES.get(following, f"\\{following}"))
    return "".join(found)
