"""Rules of the log."""

from __future__ import annotations

import logging

import pytest

from qmf.broker.daemon.log_rules import LogRuleError, LogRules, category, level_name


def record(
    level: int, logger: str = "qmf.broker", module: str = "server", function: str = "start"
) -> logging.LogRecord:
    return logging.LogRecord(logger, level, f"/src/{module}.py", 1, "text", None, None, function)


def levels(*enabled: str, disabled: tuple[str, ...] = (), logger: str = "qmf.broker") -> str:
    """The first letters of the levels that are logged: t, d, i, n, w, e, c."""
    rules = LogRules.parse(enabled, disabled)
    numbers = {"t": 5, "d": 10, "i": 20, "n": 25, "w": 30, "e": 40, "c": 50}
    return "".join(letter for letter, number in numbers.items() if rules.applies(record(number, logger)))


@pytest.mark.parametrize(
    ("rule", "logged"),
    [
        ("notice+", "nwec"),
        ("trace+", "tdinwec"),
        ("warning", "w"),
        ("info-", "tdi"),
        ("critical+", "c"),
        ("debug+:Broker", "dinwec"),
        ("debug+:broker", "dinwec"),
        ("debug+:Network", ""),
        ("debug+:server", "dinwec"),
        ("debug+:qmf.bro", "dinwec"),
        ("debug+:other", ""),
    ],
)
def test_rules(rule: str, logged: str) -> None:
    assert levels(rule) == logged


def test_rules_add_up_and_disabled_ones_win() -> None:
    assert levels("error+", "debug") == "dec"
    assert levels("trace+", disabled=("debug-",)) == "inwec"
    assert levels("trace+", disabled=("trace+:Broker",)) == ""
    assert levels("trace+", disabled=("trace+:Broker",), logger="qmf.bus") == "tdinwec"


def test_texts_of_consoles() -> None:
    rules = LogRules.parse_text("notice+, debug+:Broker,!warning:Network")
    assert str(rules) == "notice+,debug+:Broker,!warning:Network"
    assert rules.lowest == logging.DEBUG
    assert LogRules.parse_text("").lowest > logging.CRITICAL


@pytest.mark.parametrize("text", ["", "loud", "LOUD+", "debug++", "!debug", "debug:", "5"])
def test_invalid_rules(text: str) -> None:
    if text == "debug:":
        assert LogRules.parse([text]).applies(record(10))
        return
    with pytest.raises(LogRuleError, match="log rule"):
        LogRules.parse([text])


def test_names() -> None:
    assert [level_name(number) for number in (1, 5, 10, 24, 25, 30, 99)] == [
        "trace",
        "trace",
        "debug",
        "info",
        "notice",
        "warning",
        "critical",
    ]
    names = ("qmf.broker", "qmf.agent", "qmf.bus", "asyncio", "other")
    assert [category(name) for name in names] == ["Broker", "Management", "Network", "System", "Unspecified"]
