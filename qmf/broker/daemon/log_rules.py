"""Which messages are logged: qpidd's rules ``LEVEL[+-][:PATTERN]``. No I/O."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from typing import Self

import attrs

#: qpidd's level between information and warnings, which the log has by default.
NOTICE = 25

#: Levels by their names in rules, from the lowest.
LEVELS: Mapping[str, int] = {
    "trace": 5,
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": NOTICE,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
#: Categories of loggers, by the beginnings of their names; the first that fits.
_CATEGORIES = (
    ("qmf.broker.access", "Security"),
    ("qmf.broker.store", "Store"),
    ("qmf.broker", "Broker"),
    ("qmf.agent", "Management"),
    ("qmf.bus", "Network"),
    ("qmf.codec", "Protocol"),
    ("qmf.messaging", "Messaging"),
    ("asyncio", "System"),
)
CATEGORIES = frozenset(
    {"Security", "Broker", "Management", "Protocol", "System", "HA", "Messaging", "Store", "Network", "Test", "Client"}
    | {"Application", "Model", "Unspecified"}
)
_RULE = re.compile(r"(!?)\s*([a-z]+)([+-]?)(?::(.*))?")


class LogRuleError(ValueError):
    """A rule is not of the form ``LEVEL[+-][:PATTERN]``."""


def level_name(number: int) -> str:
    """The name of a level; of one between two the lower one."""
    return next((name for name, value in reversed(list(LEVELS.items())) if number >= value), "trace")


def category(logger: str) -> str:
    """The category of a logger."""
    return next((name for prefix, name in _CATEGORIES if logger.startswith(prefix)), "Unspecified")


@attrs.frozen
class LogRule:
    """A set of messages.

    Attributes:
        low, high: their levels.
        pattern: a category in any case, or a part of a logger's, module's or function's name; empty for all.
        text: as written.
    """

    low: int
    high: int
    pattern: str
    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a rule.

        Raises:
            RuleError: it is invalid; says why.
        """
        match = _RULE.fullmatch(text.strip())
        if match is None or match[1]:
            raise LogRuleError(f"log rule {text!r} is not of the form LEVEL[+-][:PATTERN]")
        level = LEVELS.get(match[2])
        if level is None:
            raise LogRuleError(f"log rule {text!r}: the level must be one of {', '.join(LEVELS)}")
        low = 0 if match[3] == "-" else level
        high = logging.CRITICAL if match[3] == "+" else level
        return cls(low, high, (match[4] or "").strip(), text.strip())

    def applies(self, record: logging.LogRecord) -> bool:
        """Whether a message is in the set."""
        if not self.low <= min(record.levelno, logging.CRITICAL) <= self.high:
            return False
        pattern = self.pattern
        if not pattern or pattern.lower() == category(record.name).lower():
            return True
        if pattern.lower() in (name.lower() for name in CATEGORIES):
            return False
        return any(pattern in name for name in (record.name, record.module, record.funcName or ""))


@attrs.frozen
class LogRules:
    """What is logged: what a rule of `enabled` applies to, and none of `disabled`."""

    enabled: tuple[LogRule, ...]
    disabled: tuple[LogRule, ...] = ()

    @classmethod
    def parse(cls, enabled: Iterable[str], disabled: Iterable[str] = ()) -> Self:
        """Read rules.

        Raises:
            RuleError: one is invalid.
        """
        return cls(tuple(map(LogRule.parse, enabled)), tuple(map(LogRule.parse, disabled)))

    @classmethod
    def parse_text(cls, text: str) -> Self:
        """Read rules with commas between them; those with ``!`` disable.

        Raises:
            RuleError: one is invalid.
        """
        rules = [item.strip() for item in text.split(",") if item.strip()]
        off = [rule[1:] for rule in rules if rule.startswith("!")]
        return cls.parse([rule for rule in rules if not rule.startswith("!")], off)

    def __str__(self) -> str:
        return ",".join([*(rule.text for rule in self.enabled), *(f"!{rule.text}" for rule in self.disabled)])

    @property
    def lowest(self) -> int:
        """The lowest level that may be logged."""
        return min((rule.low for rule in self.enabled), default=logging.CRITICAL + 1)

    def applies(self, record: logging.LogRecord) -> bool:
        """Whether a message is logged."""
        return any(rule.applies(record) for rule in self.enabled) and not any(
            rule.applies(record) for rule in self.disabled
        )
