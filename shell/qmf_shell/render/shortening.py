"""Shortens texts to a width: generated names in the middle, named values one by one. Pure functions on clean text."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

from rich.cells import cell_len, set_cell_size

from qmf_shell.render.layout import display_width

#: A named value is not made shorter than this, or than two thirds of the line if that is less: rather, values are left
#: out, since the first ones say most.
SHORTEST_VALUE = 24


def shorten_middle(text: str, width: int, mark: str = "…") -> str:
    """`text` in at most `width` columns: its beginning and its end, which tell generated names apart."""
    if display_width(text) <= width:
        return text
    room = width - len(mark)
    if room < 2:
        return shorten_end(text, width, mark)
    tail = room // 2
    return _first(text, room - tail) + mark + _last(text, tail)


def shorten_end(text: str, width: int, mark: str = "…") -> str:
    """The beginning of `text` in at most `width` columns."""
    if display_width(text) <= width:
        return text
    return (_first(text, max(0, width - len(mark))) + mark)[: max(0, width)]


def _first(text: str, width: int) -> str:
    # A wide character that fits only half is replaced by a blank.
    return text[:width] if text.isascii() else set_cell_size(text, width).rstrip()


def _last(text: str, width: int) -> str:
    if text.isascii():
        return text[len(text) - width :] if width else ""
    widths = accumulate(cell_len(char) for char in reversed(text))
    count = sum(1 for total in widths if total <= width)
    return text[len(text) - count :] if count else ""


def shorten_values(pairs: Sequence[tuple[str, str]], width: int, mark: str = "…") -> str:
    """Named values as ``name=value name=value`` in at most `width` columns.

    The longest values are shortened in the middle first; before they say too little, the last ones are left out.

    Args:
        pairs: names and texts of the values.
        width: columns.
        mark: stands for what is left out.
    """
    shortest = min(SHORTEST_VALUE, width * 2 // 3)
    for count in range(len(pairs), 0, -1):
        more = "" if count == len(pairs) else f" {mark}"
        shown = pairs[:count]
        texts = [value for _, value in shown]
        fixed = sum(display_width(name) + 2 for name, _ in shown) - 1 + len(more)
        limit = _value_limit([display_width(text) for text in texts], width - fixed, shortest)
        if limit is None:
            if count > 1:
                continue
            limit = max(1, width - fixed)
        texts = [shorten_middle(text, limit, mark) for text in texts]
        line = " ".join(f"{name}={text}" for (name, _), text in zip(shown, texts, strict=True)) + more
        return shorten_end(line, width, mark)
    return ""


def _value_limit(widths: Sequence[int], room: int, shortest: int) -> int | None:
    """The greatest width of values that lets all of them fit in `room`; None if they do not fit."""
    if sum(min(width, shortest) for width in widths) > room:
        return None
    low, high = shortest, max([shortest, *widths])
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(width, middle) for width in widths) <= room:
            low = middle
        else:
            high = middle - 1
    return low
