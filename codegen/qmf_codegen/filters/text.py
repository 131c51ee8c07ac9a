"""Running text: escaping for docstrings and comments, and wrapping."""

from __future__ import annotations

from collections.abc import Iterable

#: Length of a line of the generated code, as in this project's own.
LINE = 120

#: Columns of the quotes around a docstring of one line.
QUOTES = 6


def escape(text: str) -> str:
    """Text for a docstring: whatever it holds, it neither ends the docstring nor changes in it."""
    escaped = "".join(_escape_char(char) for char in text)
    return escaped.replace('"""', '\\"\\"\\"')


def sentence(text: str) -> str:
    """Text on one line, with spaces single and a full stop at its end unless it ends like a sentence already."""
    words = " ".join(text.split())
    return words if not words or words[-1] in ".!?" else f"{words}."


def wrap(text: str, indent: int, *, first: str = "", hanging: int = 0, room: int = 0) -> str:
    """Break text into lines at its spaces; a word that is too long for any line gets one of its own.

    Args:
        text: the words.
        indent: columns before every line; not written before the first.
        first: what comes before all words, e.g. a label.
        hanging: further columns before all lines but the first.
        room: columns that something else takes on the first line.
    """
    words = [first, *text.split()] if first else text.split()
    lines: list[list[str]] = [[]]
    used = indent + room
    for word in words:
        if lines[-1] and used + 1 + width(word) > LINE:
            lines.append([])
            used = indent + hanging
        used += width(word) + (1 if lines[-1] else 0)
        lines[-1].append(word)
    return ("\n" + " " * (indent + hanging)).join(" ".join(line) for line in lines)


def width(text: str) -> int:
    """Columns that text takes at most: other than ASCII counts double, since some of it does."""
    return sum(1 if char.isascii() else 2 for char in text)


def docstring(paragraphs: Iterable[str], indent: int) -> str:
    """A docstring with its quotes, from paragraphs that are wrapped already; indented but for its first line.

    The first paragraph leaves room for `QUOTES` on its first line.
    """
    text = ("\n\n" + " " * indent).join(paragraphs)
    if text.startswith('"'):
        text = "\\" + text
    if "\n" not in text:
        return f'"""{text}"""'
    return f'"""{text}\n{" " * indent}"""'


def comment(text: str) -> str:
    """Text for a comment, on one line."""
    return "".join(char if char.isprintable() else "?" for char in text)


def _escape_char(char: str) -> str:
    if char == "\\":
        return "\\\\"
    if char.isprintable() or char in "\n ":
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
