"""TOML files with the lines of their tables and keys, for messages: the standard library's parser doesn't keep these.

Also finds every syntax error of a text where the parser stops at the first: the text is parsed table by table.
"""

from __future__ import annotations

import contextlib
import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from qmf.errors import CallerError

#: Names of tables and keys; the number of a table in an array of tables, from 0, follows the name of the array.
KeyPath = tuple[str | int, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"(?:\\.|[^"\\])*"|'[^']*')"""
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*(\[\[?)\s*({_NAME})\s*\]\]?")
_KEY = re.compile(rf"\s*({_NAME})\s*=")
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")

#: What decides where a line ends in a value: texts, comments and brackets.
_TOKEN = re.compile(r'"""|\'\'\'|"(?:\\.|[^"\\])*"|\'[^\']*\'|#.*|[\[\]{}]')


class TomlSyntaxError(ValueError):
    """A text is not TOML.

    Attributes:
        errors: line and text of each table's first error.
    """

    def __init__(self, errors: list[tuple[int, str]]) -> None:
        super().__init__("; ".join(f"line {line}: {text}" for line, text in errors))
        self.errors = errors


@attrs.frozen
class TomlFile:
    """A file that was read.

    Attributes:
        path: of the file.
        text: its text.
        content: its tables and keys.
        error: the class of errors about it.
    """

    path: Path
    text: str = attrs.field(repr=False)
    content: dict[str, Any]
    error: type[CallerError]

    @contextlib.contextmanager
    def at(self, *key: str | int) -> Iterator[None]:
        """A block that reads the value of a key: its errors name the file and the line of the key.

        Raises:
            CallerError: of the class `error`, for any `CallerError` in the block.
        """
        try:
            yield
        except CallerError as error:
            line = line_of(key_lines(self.text), key)
            raise self.error(f"{self.path}:{line or 1}: {error}") from None


def read_toml(path: Path, error: type[CallerError]) -> TomlFile | None:
    """Read a file; None if there is none.

    Args:
        path: of the file.
        error: the class of errors about it; takes a message.

    Raises:
        CallerError: of the class `error`: the file cannot be read, or is not TOML. Names file and line.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return TomlFile(path, text, parse_toml(text), error)
    except FileNotFoundError:
        return None
    except OSError as reason:
        raise error(f"cannot read {path}: {reason.strerror or reason}") from None
    except UnicodeDecodeError as reason:
        raise error(f"{path}: {reason}") from None
    except TomlSyntaxError as reason:
        raise error("\n".join(f"{path}:{line}: {wrong}" for line, wrong in reason.errors)) from None


def parse_toml(text: str) -> dict[str, Any]:
    """The tables and keys of a text.

    Raises:
        TomlSyntaxError: it is not TOML.
    """
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TomlSyntaxError(_syntax_errors(text, error)) from None


def key_lines(text: str) -> dict[KeyPath, int]:
    """The line of each table and key, from 1; of keys within the value of another key, that of the outer one.

    Args:
        text: TOML. Where it is not, the lines that are found may be wrong.
    """
    found: dict[KeyPath, int] = {}
    counts: dict[KeyPath, int] = {}
    table: KeyPath = ()
    for number, line in _starts(text):
        if header := _HEADER.match(line):
            table = _table(header[2], header[1] == "[[", counts)
            for length in range(1, len(table) + 1):
                found.setdefault(table[:length], number)
        elif key := _KEY.match(line):
            parts = _parts(key[1])
            for length in range(1, len(parts) + 1):
                found.setdefault((*table, *parts[:length]), number)
    return found


def line_of(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    """The line of a key, or of the innermost table or key around it; None where there is none."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def _syntax_errors(text: str, error: tomllib.TOMLDecodeError) -> list[tuple[int, str]]:
    """The errors of a text, of which the parser gave the first."""
    lines = text.split("\n")
    begins = [number for number, line in _starts(text) if _HEADER.match(line)]
    found = []
    for begin, end in zip([1, *begins], [*begins, len(lines) + 1], strict=True):
        part = "\n".join(lines[begin - 1 : end - 1])
        try:
            tomllib.loads(part)
        except tomllib.TOMLDecodeError as wrong:
            found.append(_place(wrong, begin, part))
    # A table that is declared twice is an error of none of its parts.
    return found or [_place(error, 1, text)]


def _table(name: str, is_array: bool, counts: dict[KeyPath, int]) -> KeyPath:
    """The path of a table, with the numbers of the arrays' last tables in it."""
    path: KeyPath = ()
    parts = _parts(name)
    for index, part in enumerate(parts):
        path = (*path, part)
        if is_array and index == len(parts) - 1:
            counts[path] = counts.get(path, -1) + 1
        if path in counts:
            path = (*path, counts[path])
    return path


def _place(error: tomllib.TOMLDecodeError, begin: int, text: str) -> tuple[int, str]:
    match = _AT.search(str(error))
    last = begin + text.rstrip("\n").count("\n")
    return (begin + int(match[1]) - 1 if match and match[1] else last), _AT.sub("", str(error))


def _starts(text: str) -> Iterator[tuple[int, str]]:
    """The lines at which a table or key can begin, with their numbers."""
    closing, depth = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        rest = line
        if closing:
            at = line.find(closing)
            if at < 0:
                continue
            rest, closing = line[at + 3 :], ""
        elif not depth:
            yield number, line
            if _HEADER.match(line):
                continue
        for token in _tokens(rest):
            if token in ('"""', "'''"):
                closing = token
            else:
                depth = max(0, depth + (token in "[{") - (token in "]}"))


def _tokens(line: str) -> Iterator[str]:
    at = 0
    while match := _TOKEN.search(line, at):
        token, at = match[0], match.end()
        if token in ('"""', "'''"):
            end = line.find(token, at)
            if end < 0:
                yield token
                return
            at = end + 3
        elif token in "[]{}":
            yield token


def _parts(name: str) -> tuple[str, ...]:
    return tuple(part.strip("\"'") for part in re.findall(_PART, name))
