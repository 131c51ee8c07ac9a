"""Numbers on command lines."""

from __future__ import annotations

import argparse
from collections.abc import Callable

import pytest

from qmf.tools.config.cli import main as config
from qmf.tools.messages.drain import main as drain
from qmf.tools.messages.spout import main as spout
from qmf.tools.numbers import whole_number
from qmf.tools.queue_stats import main as queue_stats


def test_whole_numbers() -> None:
    assert [whole_number(text) for text in ("0", "12", "007")] == [0, 12, 7]
    with pytest.raises(argparse.ArgumentTypeError, match="-5 is negative: it must be 0 or more"):
        whole_number("-5")
    for text in ("", "x", "1.5", "٣", "-"):
        with pytest.raises(argparse.ArgumentTypeError, match="is not a whole number"):
            whole_number(text)


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
