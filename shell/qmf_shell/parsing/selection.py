"""What follows a class in `list`, `show`, `watch` and `export`: which of its objects are meant, and how to show them.

    [active] [wide] [ID...] [where CONDITION] [sort [by] NAME [asc|desc], ...] [columns NAME, ...] [limit COUNT]

The parts after the ids may come in any order, each once. A keyword in quotes is an id.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from qmf.errors import CallerError
from qmf.views.conditions import Condition
from qmf.views.conditions.parser import parse_words
from qmf.views.conditions.words import Word

KEYWORDS = ("active", "wide", "where", "sort", "columns", "limit")


class SelectionError(CallerError):
    """A part of a selection is not valid, or is given twice."""


@attrs.frozen
class SortKey:
    """A value to sort by.

    Attributes:
        name: of the value.
        descending: the largest first.
    """

    name: str
    descending: bool = False


@attrs.frozen(kw_only=True)
class ParsedSelection:
    """Some objects of a class.

    Attributes:
        ids: as typed; empty means all objects.
        active: leave out objects that were destroyed.
        wide: statistics with all their values.
        where: condition, or None.
        sort_keys: what to sort by, the most significant first; empty means by index.
        columns: values to show; empty means the default ones.
        limit: how many to show at most, or None.
    """

    ids: tuple[str, ...] = ()
    active: bool = False
    wide: bool = False
    where: Condition | None = None
    sort_keys: tuple[SortKey, ...] = ()
    columns: tuple[str, ...] = ()
    limit: int | None = None


def keyword_of(word: Word) -> str | None:
    """The keyword that `word` is, or None. In quotes it is not a keyword."""
    text = word.text.lower()
    return text if text in KEYWORDS and word.plain == len(word.text) == word.end - word.start else None


def parse_selection(words: Sequence[Word]) -> ParsedSelection:
    """The selection that the words after a class describe.

    Raises:
        SelectionError, ConditionError: they are not a valid selection.
    """
    result = ParsedSelection()
    rest = list(words)
    while rest and keyword_of(rest[0]) is None:
        result = attrs.evolve(result, ids=(*result.ids, rest.pop(0).text))
    done: set[str] = set()
    while rest:
        word = rest.pop(0)
        part = keyword_of(word)
        if part is None:
            raise SelectionError(f"{word.text!r} in column {word.start + 1} is none of {', '.join(KEYWORDS)}")
        if part in done:
            raise SelectionError(f"{part} is given twice")
        done.add(part)
        if part == "active":
            result = attrs.evolve(result, active=True)
        elif part == "wide":
            result = attrs.evolve(result, wide=True)
        elif part == "where":
            if not rest or keyword_of(rest[0]) is not None:
                raise SelectionError("where needs a condition, e.g. where depth > 100")
            condition, used = parse_words(rest, ends=keyword_of)
            result = attrs.evolve(result, where=condition)
            del rest[:used]
        else:
            result = _with_part(result, part, _until_keyword(rest))
    return result


def _until_keyword(rest: list[Word]) -> list[Word]:
    words = []
    while rest and keyword_of(rest[0]) is None:
        words.append(rest.pop(0))
    return words


def _with_part(result: ParsedSelection, part: str, words: Sequence[Word]) -> ParsedSelection:
    texts = [text for word in words for text in re.split(r"[,\s]+", word.text) if text]
    if part == "limit":
        if len(texts) != 1 or not re.fullmatch("[0-9]{1,9}", texts[0]):
            raise SelectionError("limit needs a number, e.g. limit 10")
        return attrs.evolve(result, limit=int(texts[0]))
    if part == "columns":
        if not texts:
            raise SelectionError("columns needs names of values, e.g. columns name, depth; or all")
        return attrs.evolve(result, columns=tuple(dict.fromkeys(texts)))
    return attrs.evolve(result, sort_keys=_sort_keys(texts))


def _sort_keys(texts: list[str]) -> tuple[SortKey, ...]:
    if len(texts) > 1 and texts[0].lower() == "by":
        del texts[0]
    keys: list[SortKey] = []
    for text in texts:
        if text.lower() in ("asc", "desc") and keys:
            keys[-1] = attrs.evolve(keys[-1], descending=text.lower() == "desc")
        else:
            keys.append(SortKey(text))
    if not keys:
        raise SelectionError("sort needs the name of a value, e.g. sort depth desc")
    return tuple(keys)
