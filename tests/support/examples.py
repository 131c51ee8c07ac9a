"""How many values hypothesis invents for a test."""

from __future__ import annotations

from typing import Any

from hypothesis import settings

#: Invented values of a test without a number of its own: in `make test` and in `make soak`.
IN_TESTS, IN_SOAK = 20, 1000


def examples(number: int, **more: Any) -> settings:
    """Settings of a test that needs more or fewer values than others.

    Args:
        number: of values; `make soak` invents as many times more of them as of others.
        more: other settings.
    """
    return settings(max_examples=number * settings().max_examples // IN_TESTS, **more)
