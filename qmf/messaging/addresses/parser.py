"""Parses ``name [ / subject ] [ ; { options } ]``.

The grammar (published Python API, "Syntax" of addresses)::

    address = name [ "/" subject ] [ ";" map ]
       name = tokens up to "/" or ";", at least one
    subject = tokens up to ";"
        map = "{" [ key ":" value { "," key ":" value } ] "}"
       list = "[" [ value { "," value } ] "]"
        key = NUMBER | STRING | IDENTIFIER | bare
      value = NUMBER | STRING | IDENTIFIER | bare | map | list
       bare = tokens without blanks between them, such as amq.topic/a.# (an addition: Apache's C++ client accepts it)

Blanks within a name or a subject belong to it (an addition: Apache's Python client drops them, and uses another node
than the one that was written). Elsewhere they have no meaning. The values ``True``, ``true``, ``False``, ``false`` and
``None`` are constants.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from qmf.messaging.addresses.lexer import AddressToken, TokenKind, malformed_address, tokens, unescape
from qmf.messaging.exceptions import MalformedAddress

#: Maps and lists may be nested so deep.
MAX_DEPTH = 32

_CONSTANTS: dict[str, bool | None] = {"True": True, "true": True, "False": False, "false": False, "None": None}
_SCALARS = (TokenKind.NUMBER, TokenKind.STRING, TokenKind.IDENTIFIER)
_BARE = (TokenKind.NUMBER, TokenKind.IDENTIFIER, TokenKind.SYMBOL, TokenKind.ESCAPE, TokenKind.SLASH)


@attrs.frozen
class ParsedAddress:
    """The parts of an address.

    Attributes:
        name: of the node.
        subject: None where the address has none.
        options: as written, not checked; values are str, int, float, bool, None, dict and list. None where the address
            has none.
    """

    name: str
    subject: str | None
    options: dict[str, object] | None


def parse(text: str) -> ParsedAddress:
    """Take an address apart.

    Raises:
        MalformedAddress: the text is not an address; names line and column.
    """
    return _Parser(text).address()


def parse_map(text: str) -> dict[str, object]:
    """The map that a text such as ``{name: value}`` stands for, in the form of an address's options.

    Raises:
        MalformedAddress: the text is not a map; names line and column.
    """
    return _Parser(text).map()


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(tokens(text))
        self._next = 0

    def address(self) -> ParsedAddress:
        name = self._text_up_to(TokenKind.SLASH, TokenKind.SEMICOLON)
        if name is None:
            raise self._error(f"unexpected token {self._peek()}, the name is missing")
        subject = None
        if self._accept(TokenKind.SLASH):
            subject = self._text_up_to(TokenKind.SEMICOLON)
        options = self.map() if self._accept(TokenKind.SEMICOLON) else None
        if self._peek().kind is not TokenKind.END:
            raise self._unexpected_token(TokenKind.END)
        return ParsedAddress(name, subject, options)

    def map(self) -> dict[str, object]:
        if self._peek().kind is not TokenKind.LBRACE:
            raise self._unexpected_token(TokenKind.LBRACE)
        values = self._map(0)
        if self._peek().kind is not TokenKind.END:
            raise self._unexpected_token(TokenKind.END)
        return values

    def _text_up_to(self, *ends: TokenKind) -> str | None:
        parts: list[str] = []
        end = 0
        while (kind := self._peek().kind) not in ends and kind is not TokenKind.END:
            token = self._take()
            if parts:
                parts.append(self._text[end : token.position])
            parts.append(_literal(token))
            end = token.position + len(token.text)
        return "".join(parts) if parts else None

    def _map(self, depth: int) -> dict[str, object]:
        values: dict[str, object] = {}

        def entry() -> None:
            token = self._peek()
            if token.kind is not TokenKind.STRING and token.kind not in _BARE:
                raise self._unexpected_token(*_SCALARS, TokenKind.RBRACE)
            key = "".join(map(_literal, self._scalar()))
            if key in values:
                raise malformed_address(self._text, token.position, f"{key!r} is given twice")
            if not self._accept(TokenKind.COLON):
                raise self._unexpected_token(TokenKind.COLON)
            values[key] = self._value(depth)

        self._sequence(TokenKind.RBRACE, entry)
        return values

    def _list(self, depth: int) -> list[object]:
        values: list[object] = []
        self._sequence(TokenKind.RBRACKET, lambda: values.append(self._value(depth)))
        return values

    def _sequence(self, end: TokenKind, item: Callable[[], None]) -> None:
        """Items separated by commas, from the opening bracket to the closing one; a comma may precede the latter."""
        self._take()
        while not self._accept(end):
            item()
            if not self._accept(TokenKind.COMMA) and self._peek().kind is not end:
                raise self._unexpected_token(TokenKind.COMMA, end)

    def _value(self, depth: int) -> object:
        token = self._peek()
        if depth >= MAX_DEPTH:
            raise self._error(f"maps and lists are nested more than {MAX_DEPTH} deep")
        if token.kind is TokenKind.LBRACE:
            return self._map(depth + 1)
        if token.kind is TokenKind.LBRACKET:
            return self._list(depth + 1)
        if token.kind is not TokenKind.STRING and token.kind not in _BARE:
            raise self._unexpected_token(*_SCALARS, TokenKind.LBRACE, TokenKind.LBRACKET)
        parts = self._scalar()
        text = "".join(map(_literal, parts))
        if len(parts) == 1 and token.kind is TokenKind.NUMBER:
            return float(text) if "." in text else int(text)
        return _CONSTANTS.get(text, text) if len(parts) == 1 and token.kind is TokenKind.IDENTIFIER else text

    def _scalar(self) -> list[AddressToken]:
        """The tokens of a string, a number, a name, or of bare text, which has no blanks."""
        parts = [self._take()]
        if parts[0].kind is TokenKind.STRING:
            return parts
        while (token := self._peek()).kind in _BARE and token.position == parts[-1].position + len(parts[-1].text):
            parts.append(self._take())
        return parts

    # Tokens

    def _peek(self) -> AddressToken:
        return self._tokens[self._next]

    def _take(self) -> AddressToken:
        token = self._tokens[self._next]
        self._next += 1
        return token

    def _accept(self, kind: TokenKind) -> bool:
        if self._peek().kind is kind:
            self._next += 1
            return True
        return False

    def _error(self, reason: str) -> MalformedAddress:
        return malformed_address(self._text, self._peek().position, reason)

    def _unexpected_token(self, *expected: TokenKind) -> MalformedAddress:
        names = ", ".join(kind.value for kind in expected)
        return self._error(f"expecting {names if len(expected) == 1 else f'({names})'}, got {self._peek()}")


def _literal(token: AddressToken) -> str:
    """The text that a token stands for."""
    if token.kind is TokenKind.STRING:
        return unescape(token.text[1:-1], quoted=True)
    if token.kind is TokenKind.ESCAPE:
        return unescape(token.text, quoted=False)
    return token.text
