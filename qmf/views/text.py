"""Makes text of others safe for a terminal.

Agents and brokers choose names, values and error texts. Nothing that they send may move the cursor, change colours,
reverse the reading direction or break a table: every string passes `clean` before it is printed.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
# Characters that change the reading direction, and invisible ones that hide differences between names.
_MISLEADING = frozenset(
    map(chr, (0x61C, 0x200B, 0x200E, 0x200F, *range(0x2028, 0x202F), 0x2060, *range(0x2066, 0x206A), 0xFEFF))
)


def clean(text: str) -> str:
    """`text` on one line, with every control character written as an escape such as ``\\x1b``.

    Bytes that were not valid UTF-8 (lone surrogates) are written as ``\\xff``. Printable text is returned unchanged.
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
    if unicodedata.category(char) in ("Cc", "Cs") or char in _MISLEADING:
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
