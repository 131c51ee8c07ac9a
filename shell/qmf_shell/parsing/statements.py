"""Splits text into commands, with what follows each: a program that reads its output, or a file for it.

    text      := statement ((";" | newline) statement)*
    statement := command ["|" PROGRAM] | command (">" | ">>") FILE

Quotes and JSON are as in `words`. A comment begins with ``#`` where a word could begin, or with ``!`` where a command
could. Everything after the first ``|`` is for the system's shell, further pipes and redirections included.

Three signs also occur in commands: ``>`` redirects only where it begins a word, one more word follows it at the end,
and no comparison is unfinished before it, as in ``where depth > 100``; ``>>`` in its place is refused. ``|`` within the
pattern after a ``~`` belongs to the pattern.
"""

from __future__ import annotations

import enum

import attrs

from qmf.views.conditions import ConditionError
from qmf.views.conditions.parser import parse_words
from qmf.views.conditions.tokens import tokenize
from qmf.views.conditions.words import LineError, json_end, quoted_end, split_line, split_partial
from qmf_shell.parsing.selection import keyword_of


@attrs.frozen
class Redirection:
    """A file for the output of a command.

    Attributes:
        path: as typed.
        append: keep what the file contains.
    """

    path: str
    append: bool = False


@attrs.frozen
class Statement:
    """One command, with what happens to its output.

    Attributes:
        whole: its text with pipe and redirection, without comments.
        command: its text without them.
        program: the text after ``|``; empty without a pipe.
        redirection: the file for its output, or None.
    """

    whole: str
    command: str
    program: str = ""
    redirection: Redirection | None = None


@attrs.define
class _Piece:
    """A statement that is being scanned.

    Attributes:
        start, end: where it is in the text.
        pipe: where its ``|`` is, or None.
        arrows: where ``>`` begins a word.
        word: where the current word begins, or None between words.
        before: the word before the current one.
    """

    start: int
    end: int = 0
    pipe: int | None = None
    arrows: list[int] = attrs.field(factory=list)
    word: int | None = None
    before: str = ""

    @property
    def empty(self) -> bool:
        return self.word is None and not self.before and self.pipe is None


def split_statements(text: str) -> list[Statement]:
    """The commands of a text; comments and blank ones are left out.

    Raises:
        LineError: no program follows a ``|``, or no command precedes one; no file follows a ``>``.
    """
    return [statement for piece in _scan(text) if (statement := _statement(text, piece)) is not None]


class Place(enum.Enum):
    """What the cursor is in."""

    COMMAND = "command"
    PROGRAM = "program"
    FILE = "file"
    COMMENT = "comment"


@attrs.frozen
class CursorStatement:
    """The command at the end of an unfinished text.

    Attributes:
        start: where it begins in the text; of a file, where its name is expected.
        place: what the cursor is in.
    """

    start: int
    place: Place


def cursor_statement(text: str) -> CursorStatement:
    """The command at the cursor, for the text up to it. Never fails."""
    piece = _scan(text)[-1]
    if piece.end < len(text):
        return CursorStatement(piece.start, Place.COMMENT)
    if piece.pipe is not None:
        return CursorStatement(piece.pipe + 1, Place.PROGRAM)
    for arrow in piece.arrows[-1:]:
        after = arrow + (2 if text.startswith(">>", arrow) else 1)
        target = split_partial(text[after:])
        if not target.before and not text.startswith(">=", arrow) and not compares(text[piece.start : arrow]):
            return CursorStatement(after, Place.FILE)
    return CursorStatement(piece.start, Place.COMMAND)


def _scan(text: str) -> list[_Piece]:
    """The statements of a text by their places, blank ones included."""
    pieces: list[_Piece] = []
    at = 0
    while True:
        piece = _Piece(at)
        at = _scan_piece(text, piece)
        pieces.append(piece)
        if at >= len(text):
            return pieces
        at += 1  # after the separator


def _scan_piece(text: str, piece: _Piece) -> int:
    """Scan one statement; returns the place of the separator after it, or the end of the text."""
    at = piece.start
    while at < len(text):
        char = text[at]
        if char in ";\n":
            break
        if (char == "#" and piece.word is None) or (char == "!" and piece.empty):
            piece.end = at
            end = text.find("\n", at)
            return len(text) if end < 0 else end
        if char.isspace():
            if piece.word is not None:
                piece.before, piece.word = text[piece.word : at], None
            at += 1
        else:
            at = _scan_sign(text, at, piece)
    piece.end = min(at, len(text))
    return piece.end


def _scan_sign(text: str, at: int, piece: _Piece) -> int:
    """Scan what is at `at`, which is not blank; returns the place after it."""
    char = text[at]
    begins = piece.word is None
    if char == "|" and piece.pipe is None and not _in_pattern(text, at, piece):
        piece.pipe, piece.word = at, None
        return at + 1
    if char == ">" and begins and piece.pipe is None:
        piece.arrows.append(at)
    if piece.word is None:
        piece.word = at
    value = begins or (text[at - 1] == "=" and text.count("=", piece.word, at) == 1)
    if char in "'\"":
        return quoted_end(text, at)
    if char == "\\":
        return at + 2
    if char in "{[" and value and piece.pipe is None:
        return json_end(text, at)
    return at + 1


def _in_pattern(text: str, at: int, piece: _Piece) -> bool:
    if piece.word is None:
        return False
    return "~" in text[piece.word : at] or piece.before in ("~", "!~")


def _statement(text: str, piece: _Piece) -> Statement | None:
    # Blanks in front keep the columns that messages name.
    line = " " * (piece.start - text.rfind("\n", 0, piece.start) - 1)
    whole = line + text[piece.start : piece.end]
    if not whole.strip():
        return None
    if piece.pipe is not None:
        return _piped_statement(text, piece, line, whole)
    for arrow in reversed(piece.arrows):
        before, after = text[piece.start : arrow], text[arrow + 1 : piece.end]
        if after.startswith("="):
            continue
        append = after.startswith(">")
        column = len(line) + arrow - piece.start + 1
        target = split_line(" " * (column + append) + after[append:])
        if len(target) > 1:
            break
        if compares(before):
            if append:
                raise LineError(_no_comparison(column), column)
            break
        if not target:
            raise LineError(f"the name of a file must follow the {'>>' if append else '>'} in column {column}", column)
        if not before.strip():
            raise LineError(f"a command must precede the {'>>' if append else '>'} in column {column}", column)
        return Statement(whole, line + before, redirection=Redirection(target[0].text, append))
    return Statement(whole, whole)


def _no_comparison(column: int) -> str:
    return (
        f"the >> in column {column} is within a condition, where > and >= compare; "
        "to append the output to a file, put the condition in brackets before >>"
    )


def _piped_statement(text: str, piece: _Piece, line: str, whole: str) -> Statement:
    assert piece.pipe is not None
    command, program = text[piece.start : piece.pipe], text[piece.pipe + 1 : piece.end].strip()
    column = len(line) + piece.pipe - piece.start + 1
    if not command.strip():
        raise LineError(f"a command must precede the | in column {column}", column)
    if not program or program.startswith("|"):
        raise LineError(f"a program must follow the | in column {column}", column)
    return Statement(whole, line + command, program)


def compares(before: str) -> bool:
    """True if a ``>`` after `before` compares: `before` ends with a word in a condition."""
    try:
        words = split_line(before)
    except LineError:
        return True
    where = next((at for at, word in enumerate(words) if at and keyword_of(word) == "where"), None)
    if where is None:
        return False
    condition = words[where + 1 :]
    try:
        # What follows the condition of a call is a method and its inputs.
        _, used = parse_words(condition, ends=keyword_of, alone=words[0].text.lower() != "call")
    except ConditionError:
        return True  # unfinished; the command reports it
    *others, last = tokenize(condition)
    named = bool(others) and others[-1].is_keyword("has")
    return used == len(condition) and not (last.sign or last.value or last.quoted or named)
