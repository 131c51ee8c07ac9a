"""Numbers on command lines."""

from __future__ import annotations

import argparse


def whole_number(text: str) -> int:
    """The value of an option that counts something.

    Raises:
        ArgumentTypeError: it is no whole number, or negative.
    """
    try:
        number = int(text) if text.isascii() else None
    except ValueError:
        number = None
    if number is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    if number < 0:
        raise argparse.ArgumentTypeError(f"{text} is negative: it must be 0 or more")
    return number
