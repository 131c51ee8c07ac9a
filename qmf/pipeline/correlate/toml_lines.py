"""The lines of tables and keys in a TOML text, for messages: the standard library's parser doesn't keep them. Pure.

Also finds every syntax error of a text where the parser stops at the first: the text is parsed table by table.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping

Path = tuple[str, ...]

_PART = r"""(?:[A-Za-z0-9_-]+|"[^"]*"|'[^']*')"""
_NAME = rf"{_PART}(?:\s*\.\s*{_PART})*"
_HEADER = re.compile(rf"\s*\[\[?\s*({_NAME})\s*\]\]?")
_KEY = re.compile(rf"\s*({_NAME})\s*=")
_AT = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")

#: What decides where a line ends in a value: texts, comments and brackets.
_TOKEN = re.compile(r'"""|\'\'\'|"(?:\\.|[^"\\])*"|\'[^\']*\'|#.*|[\[\]{}]')


def key_lines(text: str) -> dict[Path, int]:
    """The line of each table and key, from 1; of keys within the value of another key, that of the outer one.

    Args:
        text: TOML. Where it is not, the lines that are found may be wrong.

    Returns:
        the lines; the tables of a list have their place in it, from 1, as a part of their path.
    """
    found: dict[Path, int] = {}
    table: Path = ()
    lists: dict[Path, int] = {}
    for number, line in _starts(text):
        if header := _HEADER.match(line):
            parts = _parts(header[1])
            if line.lstrip().startswith("[["):
                lists = {path: count for path, count in lists.items() if path == parts or path[: len(parts)] != parts}
                lists[parts] = lists.get(parts, 0) + 1
            table = _placed_path(parts, lists)
            for length in range(1, len(table) + 1):
                found.setdefault(table[:length], number)
        elif key := _KEY.match(line):
            found.setdefault((*table, *_parts(key[1])), number)
    return found


def line_of(lines: Mapping[Path, int], path: Path) -> int | None:
    """The line of a key, or of the innermost table or key around it; None where there is none."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return None


def syntax_errors(text: str) -> list[tuple[int, str]]:
    """Line and text of each table's first syntax error; none for TOML."""
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        first = _placed(error, 1, text)
    else:
        return []
    lines = text.split("\n")
    begins = [number for number, line in _starts(text) if _HEADER.match(line)]
    found = []
    for begin, end in zip([1, *begins], [*begins, len(lines) + 1], strict=True):
        part = "\n".join(lines[begin - 1 : end - 1])
        try:
            tomllib.loads(part)
        except tomllib.TOMLDecodeError as error:
            found.append(_placed(error, begin, part))
    # A table that is declared twice is an error of none of its parts.
    return found or [first]


def _placed_path(parts: Path, lists: Mapping[Path, int]) -> Path:
    """The path of a table, with the places of the lists that it is in."""
    found: Path = ()
    for length, part in enumerate(parts, 1):
        place = lists.get(parts[:length])
        found = (*found, part) if place is None else (*found, part, str(place))
    return found


def _placed(error: tomllib.TOMLDecodeError, begin: int, text: str) -> tuple[int, str]:
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


def _parts(name: str) -> Path:
    return tuple(part.strip("\"'") for part in re.findall(_PART, name))
