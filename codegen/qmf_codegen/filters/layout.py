"""Python expressions as trees, laid out on lines the way `ruff format` does it.

An expression goes on one line if it fits. Otherwise each part gets its own line and a comma behind it, which the
formatter then leaves alone; a long string is cut into pieces in parentheses.
"""

from __future__ import annotations

import unicodedata

import attrs

from qmf_codegen.filters.text import LINE


@attrs.frozen
class Code:
    """Code that stays on one line."""

    text: str


@attrs.frozen
class Text:
    """A string literal."""

    value: str


@attrs.frozen
class Group:
    """A call, tuple, list or mapping.

    Attributes:
        open, close: what stands around it, e.g. ``Property(`` and ``)``.
        items: what stands before each part, e.g. ``name=``, and the part.
        comma: the last part is followed by a comma even on one line: tuples of one.
    """

    open: str
    items: tuple[tuple[str, Node], ...]
    close: str
    comma: bool = False


Node = Code | Text | Group


def call(function: str, /, *positional: Node, **named: Node) -> Group:
    """A call of a function by name."""
    items = [("", node) for node in positional] + [(f"{key}=", node) for key, node in named.items()]
    return Group(f"{function}(", tuple(items), ")")


def tuple_of(*items: Node) -> Group:
    """A tuple."""
    return Group("(", tuple(("", item) for item in items), ")", comma=len(items) == 1)


def flat(node: Node) -> str:
    """The expression on one line."""
    match node:
        case Code(text):
            return text
        case Text(value):
            return string(value)
        case Group(open, items, close, comma):
            return open + ", ".join(before + flat(item) for before, item in items) + ("," if comma else "") + close


def lay_out(node: Node, indent: int = 0, *, before: int = 0, after: int = 0, explode: bool = False) -> str:
    """The expression on as many lines as it needs.

    Args:
        indent: columns before the line that it begins in.
        before: columns used on that line before it, indentation included.
        after: columns needed on its last line behind it.
        explode: give each part its line even if all would fit on one.
    """
    text = flat(node)
    if not explode and before + columns(text) + after <= LINE:
        return text
    inner = " " * (indent + 4)
    end = "\n" + " " * indent
    if isinstance(node, Group) and node.items:
        lines = [
            inner + start + lay_out(item, indent + 4, before=indent + 4 + columns(start), after=1) + ","
            for start, item in node.items
        ]
        return node.open + "\n" + "\n".join(lines) + end + node.close
    if isinstance(node, Text):
        room = LINE - indent - 4
        pieces = [text] if columns(text) <= room else _pieces(node.value, room)
        return "(\n" + "\n".join(inner + piece for piece in pieces) + end + ")"
    return text


def string(value: str) -> str:
    """A string literal, in the quotes that need fewer escapes; what is hard to see or to measure is escaped."""
    quote = "'" if value.count('"') > value.count("'") else '"'
    return quote + "".join(_escape(char, quote) for char in value) + quote


def columns(text: str) -> int:
    """Columns that code takes: wide characters take two."""
    return len(text) if text.isascii() else sum(2 if _is_wide(char) else 1 for char in text)


def _pieces(value: str, limit: int) -> list[str]:
    """Literals that give `value` when joined, each within `limit`; cut behind spaces where possible."""
    pieces: list[str] = []
    rest = value
    while rest:
        end = _fitting(rest, limit)
        if end < len(rest):
            space = rest.rfind(" ", 0, end) + 1
            end = space or end
        pieces.append(string(rest[:end]))
        rest = rest[end:]
    return pieces


def _fitting(text: str, limit: int) -> int:
    """How many characters of `text` go into one literal; at least one."""
    # Both quotes may have to be escaped, depending on what else is in the piece: count them as if.
    used, count = 2, 0
    for char in text:
        used += 2 if char in "'\"" else columns(_escape(char, '"'))
        if used > limit:
            break
        count += 1
    return max(count, 1)


_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\"}


def _escape(char: str, quote: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    if char == quote:
        return "\\" + char
    if (" " <= char <= "~") or _is_plain(char):
        return char
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _is_plain(char: str) -> bool:
    """True for visible characters that stand by themselves, whose width is certain."""
    conjoining = 0x1100 <= ord(char) <= 0x11FF or 0xD7B0 <= ord(char) <= 0xD7FF
    return unicodedata.category(char)[0] in "LNPS" and not conjoining and char.isprintable()


def _is_wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"
