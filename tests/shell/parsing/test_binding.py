"""Words against parameters and options."""

from __future__ import annotations

import pytest
from qmf_shell.commands import standard
from qmf_shell.parsing.binding import bind
from qmf_shell.parsing.command import AnyCommand, UsageError

from qmf.views.conditions.words import split_line


def command(line: str) -> tuple[AnyCommand, str]:
    name, _, rest = line.partition(" ")
    return standard().find(name), rest


@pytest.mark.parametrize(
    ("line", "words", "options"),
    [
        ("agents", [], {}),
        ("list fs / /home", ["fs", "/", "/home"], {}),
        ("list -a fs", ["fs"], {"active": ""}),
        ("list fs --active", ["fs"], {"active": ""}),
        ("list fs -- -a", ["fs", "-a"], {}),
        ("list fs '-a'", ["fs", "-a"], {}),
        ("list fs -5", ["fs", "-5"], {}),
        ("events -n 5 -f x", ["x"], {"number": "5", "follow": ""}),
        ("events --number=5", [], {"number": "5"}),
        ("call 1 m -x --y -5", ["1", "m", "-x", "--y", "-5"], {}),
    ],
)
def test_fine(line: str, words: list[str], options: dict[str, str]) -> None:
    which, rest = command(line)
    given = bind(which, split_line(rest))
    assert list(given.texts) == words
    assert dict(given.options) == options


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("agents x", ["agents", "'x'", "too many"]),
        ("show", ["ID is missing", "usage: show ID..."]),
        ("call", ["ID and METHOD are missing"]),
        ("call 1", ["METHOD is missing"]),
        ("list --activ fs", ["--activ", "did you mean --active"]),
        ("list -z", ["no option -z", "-a, --active"]),
        ("list queue where -eu", ["no option -eu", "in a condition, write not eu"]),
        ("list --active=1", ["takes no value"]),
        ("events -n", ["needs COUNT"]),
        ("schema a b", ["'b' is one argument too many"]),
    ],
)
def test_mistakes(line: str, parts: list[str]) -> None:
    which, rest = command(line)
    with pytest.raises(UsageError) as caught:
        bind(which, split_line(rest))
    for part in parts:
        assert part in str(caught.value)
