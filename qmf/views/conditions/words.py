"""Splits a line of text into words: a whole line, or one that is still being typed.

Rules, close to a POSIX shell's:

- blanks separate words; ``'...'`` keeps everything; ``"..."`` keeps everything but ``\\"`` and ``\\\\``;
  outside quotes a backslash keeps the next character;
- ``{`` or ``[`` at the start of a word, or of its value after ``name=``, begins JSON, which ends with the matching
  bracket and is kept as written, blanks and quotes included;
- a line that starts with ``#`` or ``!`` is a comment; `statements` knows more about comments.

Knows nothing of commands.
"""

from __future__ import annotations

import enum
import re

import attrs

from qmf.errors import CallerError

_SAFE = re.compile(r"[\w./:@%+,=~-]+")
_CLOSER = {"{": "}", "[": "]"}


class LineError(CallerError):
    """A line cannot be split into words.

    Attributes:
        reason: what is wrong, with the column.
        column: where, from 1.
    """

    def __init__(self, reason: str, column: int) -> None:
        self.reason = reason
        self.column = column
        super().__init__(reason, column)

    def __str__(self) -> str:
        return self.reason


@attrs.frozen
class Word:
    """One word of a line.

    Attributes:
        text: its text without quotes.
        start, end: its place in the line, quotes included.
        plain: how many characters at the beginning of `text` are not in quotes.
        tail: in a word with quotes, how many characters at its end are not in quotes.
    """

    text: str
    start: int
    end: int
    plain: int
    tail: int = 0

    def __str__(self) -> str:
        return self.text


class Unclosed(enum.Enum):
    """What is not closed at the end of a line."""

    SINGLE = "'"
    DOUBLE = '"'
    ESCAPE = "\\"
    JSON = "["


@attrs.frozen
class PartialLine:
    """A line up to the cursor.

    Attributes:
        before: the finished words.
        word: the word at the cursor; empty after a blank.
        unclosed: what is not closed at the cursor, or None.
    """

    before: tuple[Word, ...]
    word: Word
    unclosed: Unclosed | None


def is_comment(line: str) -> bool:
    """True for lines without a command: blank ones and comments."""
    return line.lstrip()[:1] in ("", "#", "!")


def split_line(line: str) -> tuple[Word, ...]:
    """The words of a finished line.

    Raises:
        LineError: a quote or bracket is not closed, or nothing follows a backslash; names the column.
    """
    words, current, opened = _scan(line)
    if opened is None:
        return words if current is None else (*words, current)
    what, column = opened
    raise LineError(_reason(what, line, column), column + 1)


def split_partial(line: str) -> PartialLine:
    """The words of a line that ends at the cursor. Never fails: an unclosed quote is part of the last word."""
    words, current, opened = _scan(line)
    at_end = Word("", len(line), len(line), 0)
    return PartialLine(words, current or at_end, opened[0] if opened else None)


def quote(text: str) -> str:
    """`text` written so that `split_line` returns it as one word."""
    return text if _SAFE.fullmatch(text) else quote_word(text)


def quote_word(text: str) -> str:
    """`text` in quotes, so that `split_line` returns it as one word of which nothing is a sign or a keyword."""
    if "'" not in text:
        return f"'{text}'"
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def quoted_end(text: str, start: int) -> int:
    """The place after the quotes that begin at `start`; the end of the text if they are not closed."""
    return _scan_quoted(text, start)[1]


def json_end(text: str, start: int) -> int:
    """The place after the brackets that begin at `start`; the end of the text if they are not closed."""
    return _scan_json(text, start)[1]


def _reason(what: Unclosed, line: str, column: int) -> str:
    if what is Unclosed.ESCAPE:
        return f"nothing follows the backslash in column {column + 1}; write \\\\ for a backslash"
    if what is Unclosed.JSON:
        sign = line[column]
        where = f"the {sign} in column {column + 1}"
        return f"{where} has no matching {_CLOSER[sign]}; put the word in quotes to write a plain {sign}"
    return f"the quote {what.value} in column {column + 1} is not closed"


def _scan(line: str) -> tuple[tuple[Word, ...], Word | None, tuple[Unclosed, int] | None]:
    """Finished words, the word at the end of the line (if any), and what is not closed there with its column."""
    words: list[Word] = []
    at = 0
    while at < len(line):
        if line[at].isspace():
            at += 1
            continue
        word, opened = _scan_word(line, at)
        if opened is not None or word.end == len(line):
            return tuple(words), word, opened
        words.append(word)
        at = word.end
    return tuple(words), None, None


def _scan_word(line: str, start: int) -> tuple[Word, tuple[Unclosed, int] | None]:
    text = ""
    plain: int | None = None
    tail = 0
    opened: tuple[Unclosed, int] | None = None
    at = start
    while at < len(line) and not line[at].isspace() and opened is None:
        char = line[at]
        quoted = char in "'\"\\"
        if quoted:
            plain = len(text) if plain is None else plain
        json = char in _CLOSER and (at == start or (text.endswith("=") and text.count("=") == 1))
        part, end, kind = _scan_part(line, at, json=json)
        opened = None if kind is None else (kind, at)
        text += part
        tail = tail + 1 if end == at + 1 and not quoted else 0
        at = end
    if plain is None:
        return Word(text, start, at, len(text)), opened
    return Word(text, start, at, plain, tail), opened


def _scan_part(line: str, at: int, *, json: bool) -> tuple[str, int, Unclosed | None]:
    """The text of a part of a word, its end, and what is not closed in it, if something is not.

    Args:
        at: the beginning of the part.
        json: it is JSON.
    """
    char = line[at]
    if char in "'\"":
        text, end, closed = _scan_quoted(line, at)
        return text, end, None if closed else Unclosed(char)
    if char == "\\":
        text = line[at + 1 : at + 2]
        return text, min(at + 2, len(line)), None if text else Unclosed.ESCAPE
    if json:
        text, end, closed = _scan_json(line, at)
        return text, end, None if closed else Unclosed.JSON
    return char, at + 1, None


def _scan_quoted(line: str, start: int) -> tuple[str, int, bool]:
    sign = line[start]
    text = ""
    at = start + 1
    while at < len(line):
        char = line[at]
        if char == sign:
            return text, at + 1, True
        if char == "\\" and sign == '"' and line[at + 1 : at + 2] in ('"', "\\"):
            at += 1
            char = line[at]
        text += char
        at += 1
    return text, at, False


def _scan_json(line: str, start: int) -> tuple[str, int, bool]:
    closers: list[str] = []
    at = start
    in_string = False
    while at < len(line):
        char = line[at]
        if in_string:
            if char == "\\":
                at += 1
            in_string = char != '"'
        elif char == '"':
            in_string = True
        elif char in _CLOSER:
            closers.append(_CLOSER[char])
        elif closers and char == closers[-1]:
            closers.pop()
            if not closers:
                return line[start : at + 1], at + 1, True
        at += 1
    return line[start:], len(line), False
