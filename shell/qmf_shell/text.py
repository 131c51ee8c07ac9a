"""Text from elsewhere, made fit for a terminal.

Agents and peers choose names, values and error texts. Nothing that they send may move the cursor, change colours,
reorder what is read or break a table: every string passes `clean` before it is printed.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

_DIGITS = re.compile(r"([0-9]+)")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Marks that change the reading direction of what follows, and invisible ones that hide differences between names.
_DECEITFUL = frozenset(
    map(chr, (0x61C, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF))
)


def clean(text: str) -> str:
    """`text` on one line, with every control character written as an escape such as ``\\x1b``.

    Bytes that were no valid UTF-8 (lone surrogates) are written as ``\\xff``. Printable text comes back unchanged.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # a raw byte, as `surrogateescape` keeps it
        return f"\\x{code - 0xDC00:02x}"
    if unicodedata.category(char) in ("Cc", "Cs") or char in _DECEITFUL:
        return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    return char


def one_line(text: str) -> str:
    """`text` with each run of white space as one blank, then cleaned: for descriptions and error texts."""
    return clean(" ".join(text.split()))


def listing(words: Iterable[str], last: str = "or") -> str:
    """Words as in a sentence: ``a``, ``a or b``, ``a, b or c``."""
    items = list(words)
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {last} {items[-1]}"


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 agent``, ``2 agents``; `many` for words that take more than an s."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"


def natural_key(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts as people count: ``eth2`` before ``eth10``."""
    parts = _DIGITS.split(text)
    return tuple((at % 2 ^ 1, int(part[:40]) if at % 2 else 0, part) for at, part in enumerate(parts) if part)
