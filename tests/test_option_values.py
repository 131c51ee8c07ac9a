"""Numbers on command lines."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from qmf._option_values import (
    count,
    number,
    port,
    positive_number,
    regular_expression,
    seconds,
    seconds_between,
    whole_number,
    whole_number_between,
)
from qmf.tools.config.cli import main as config
from qmf.tools.messages.drain import main as drain
from qmf.tools.messages.spout import main as spout
from qmf.tools.queue_stats import main as queue_stats


def test_whole_numbers() -> None:
    assert [whole_number(text) for text in ("0", "12", "007")] == [0, 12, 7]
    with pytest.raises(argparse.ArgumentTypeError, match="-5 is negative: it must be 0 or more"):
        whole_number("-5")
    for text in ("", "x", "1.5", "٣", "-"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number"):
            whole_number(text)


def test_numbers_within_bounds() -> None:
    assert [seconds_between(0.5, 60)(text) for text in ("0.5", "60", "1e1")] == [0.5, 60.0, 10.0]
    assert (seconds("0.1"), number("0"), count("1"), port("0"), port("65535")) == (
        0.1,
        0,
        1,
        0,
        65535,
    )
    assert (positive_number("1e-3"), whole_number_between(0, 90)("90"), regular_expression("a|b").pattern) == (
        0.001,
        90,
        "a|b",
    )
    for read, texts, words in (
        (seconds_between(0.5, 86_400), ("0", "86401", "nan", "x", "inf"), "seconds from 0.5 to 86400"),
        (seconds, ("0", "-1", "inf", "nan", "1s"), "seconds above 0"),
        (number, ("-1", "inf", "nan", ""), "a number, 0 or more"),
        (positive_number, ("0", "-1", "inf", "nan", "x"), "a number above 0"),
        (whole_number_between(1, 100), ("0", "101", "-1", "1.5", "", "٣", "9" * 30), "a whole number from 1 to 100"),
        (regular_expression, ("(", "[", "*"), "a regular expression: "),
        (count, ("0", "-1", "1.5", "", "٣", "9" * 30), "a whole number above 0"),
        (port, ("65536", "-1", "amqp", "", "9" * 30), "a port from 0 to 65535"),
    ):
        for text in texts:
            with pytest.raises(argparse.ArgumentTypeError, match=f"is not .*{words}"):
                read(text)


@pytest.mark.parametrize(
    ("main", "words"),
    [
        (config, ["add", "queue", "orders", "--max-queue-count"]),
        (queue_stats, ["-n"]),
        (drain, ["orders", "-c"]),
        (spout, ["orders", "-c"]),
        (spout, ["orders", "-l"]),
    ],
)
def test_a_negative_number_is_said_to_be_one(
    main: Callable[[list[str]], int], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main([*words, "-5"])
    assert caught.value.code == 2
    assert "-5 is negative: it must be 0 or more" in capsys.readouterr().err
