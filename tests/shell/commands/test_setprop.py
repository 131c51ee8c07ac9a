"""`setprop`."""

from __future__ import annotations

import pytest
from qmf_shell.session.context import Context
from shell.fakes import FakeBackend
from shell.line_runner import failure, run


def test_setprop(context: Context, backend: FakeBackend) -> None:
    assert run(context, "setprop / threshold=75").lines == ["1 property of 101 filesystem / set"]
    assert backend.assigned == [("org.example:filesystem:/", {"threshold": 75})]


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ("setprop /", ["NAME=VALUE is missing"]),
        ("setprop / threshold", ["'threshold' is not NAME=VALUE"]),
        ("setprop / thresold=1", ["no property of filesystem 'thresold'", "did you mean threshold"]),
        ("setprop / threshold=many", ["property 'threshold' of filesystem (uint8)", "not a whole number"]),
        ("setprop / threshold=101", ["must be 1 to 100"]),
        ("setprop / threshold=1 threshold=2", ["given twice"]),
        ("setprop / label=x", ["property 'label' of filesystem is read-only"]),
        ("setprop / mountPoint=/x", ["can only be set when the object is created"]),
    ],
)
def test_setprop_mistakes(context: Context, backend: FakeBackend, line: str, parts: list[str]) -> None:
    error = failure(context, line)
    for part in parts:
        assert part in error
    assert backend.assigned == []
