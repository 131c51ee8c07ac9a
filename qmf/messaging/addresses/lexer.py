"""The tokens of an address (published Python API, "Syntax" of addresses)."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator

import attrs

from qmf.messaging.exceptions import MalformedAddress


class TokenKind(enum.Enum):
    """What a token is: its name in the published API, which errors contain."""

    LBRACE = "LBRACE"
    RBRACE = "RBRACE"
    LBRACKET = "LBRACK"
    RBRACKET = "RBRACK"
    COLON = "COLON"
    SEMICOLON = "SEMI"
    SLASH = "SLASH"
    COMMA = "COMMA"
    NUMBER = "NUMBER"
    IDENTIFIER = "ID"
    STRING = "STRING"
    ESCAPE = "ESC"
    SYMBOL = "SYM"
    END = "EOF"


@attrs.frozen
class AddressToken:
    """A piece of an address.

    Attributes:
        kind: what it is.
        text: as written.
        position: offset in the address.
    """

    kind: TokenKind
    text: str
    position: int

    def __str__(self) -> str:
        """As errors of the published API show it."""
        return f"{self.kind.value}({self.text!r})" if self.text else self.kind.value


_PATTERNS = {
    TokenKind.LBRACE: r"\{",
    TokenKind.RBRACE: r"\}",
    TokenKind.LBRACKET: r"\[",
    TokenKind.RBRACKET: r"\]",
    TokenKind.COLON: ":",
    TokenKind.SEMICOLON: ";",
    TokenKind.SLASH: "/",
    TokenKind.COMMA: ",",
    TokenKind.NUMBER: r"[+-]?[0-9]*\.?[0-9]+",
    TokenKind.IDENTIFIER: r"[a-zA-Z_](?:[a-zA-Z0-9_-]*[a-zA-Z0-9_])?",
    TokenKind.STRING: r'"(?:[^\\"]|\\.)*"' r"|'(?:[^\\']|\\.)*'",
    TokenKind.ESCAPE: r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|[^ux])",
    TokenKind.SYMBOL: r"[.#*%@$^!+<>=-]",
}
_TOKEN = re.compile("|".join(f"(?P<{kind.name}>{pattern})" for kind, pattern in _PATTERNS.items()), re.DOTALL)
_BLANK = re.compile(r"[ \n\r\t]*")


def tokens(text: str) -> Iterator[AddressToken]:
    """The tokens of an address without the blanks between them; the last one is `TokenKind.END`.

    Raises:
        MalformedAddress: a character that starts no token.
    """
    position = 0
    while True:
        blank = _BLANK.match(text, position)
        assert blank is not None
        position = blank.end()
        if position == len(text):
            yield AddressToken(TokenKind.END, "", position)
            return
        match = _TOKEN.match(text, position)
        if match is None:
            raise malformed_address(text, position, f"unrecognized characters ({_reason(text, position)})")
        assert match.lastgroup is not None
        yield AddressToken(TokenKind[match.lastgroup], match[0], position)
        position = match.end()


def malformed_address(text: str, position: int, reason: str) -> MalformedAddress:
    """The error for a fault at an offset of an address, in the form of the published API.

    It names the line, from 1, the column, from 0, and has the text of the line.
    """
    begin = text.rfind("\n", 0, position) + 1
    number = text.count("\n", 0, position) + 1
    line = text[begin:].partition("\n")[0]
    return MalformedAddress(text=f"{reason} line:{number},{position - begin}:{line}")


def unescape(text: str, *, quoted: bool) -> str:
    """Replace the escapes of a string.

    Args:
        text: without its quotes.
        quoted: True inside of quotes, where ``\\n`` and the like are control characters and unknown escapes are kept;
            False outside, where a backslash only removes the meaning of the next character.
    """
    return re.sub(
        r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", lambda match: _unescape(match[1], quoted), text, flags=re.DOTALL
    )


_CONTROLS = {"n": "\n", "r": "\r", "t": "\t", "a": "\a", "b": "\b", "f": "\f", "v": "\v", "\n": ""}


def _unescape(code: str, quoted: bool) -> str:
    if len(code) > 1:
        return chr(int(code[1:], 16))
    if not quoted or code in "\\'\"":
        return code
    return _CONTROLS.get(code, f"\\{code}")


def _reason(text: str, position: int) -> str:
    char = text[position]
    if char in "'\"":
        return f"the string that starts with {char} does not end"
    if char == "\\":
        return "an escape is a backslash with one character, \\xHH or \\uHHHH"
    return f"{char!r} must be inside of quotes"
