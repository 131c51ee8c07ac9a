"""What follows a class in `list`, `watch`, `export` and `call`: which of its objects, and how they are shown.

    [active] [ID...] [where CONDITION] [sort [by] NAME [asc|desc], ...] [columns NAME, ...] [limit COUNT]

The parts after the ids stand in any order, each once. A keyword in quotes is an id. A pure function.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import attrs

from qmf.errors import CallerError
from qmf_shell.parsing.conditions import Condition, parse_condition
from qmf_shell.parsing.words import Word

KEYWORDS = ("active", "where", "sort", "columns", "limit")


class SelectionError(CallerError):
    """A part of a selection is not as it must be, or is there twice; the message says which."""


@attrs.frozen
class SortKey:
    """One value to sort by."""

    name: str
    down: bool = False


@attrs.frozen(kw_only=True)
class Selection:
    """Some objects of a class.

    Attributes:
        ids: as typed; empty means all.
        active: leave out what was destroyed.
        where: condition, or None.
        order: what to sort by, the first counts most; empty means by index.
        columns: values to show; empty means the usual ones.
        limit: how many to show at most, or None.
    """

    ids: tuple[str, ...] = ()
    active: bool = False
    where: Condition | None = None
    order: tuple[SortKey, ...] = ()
    columns: tuple[str, ...] = ()
    limit: int | None = None


def keyword_of(word: Word) -> str | None:
    """The keyword that `word` is, or None. A keyword is written without quotes."""
    text = word.text.lower()
    return text if text in KEYWORDS and word.plain == len(word.text) == word.end - word.start else None


def parse_selection(words: Sequence[Word]) -> Selection:
    """The words after a class.

    Raises:
        SelectionError, ConditionError: they are none.
    """
    result = Selection()
    rest = list(words)
    while rest and keyword_of(rest[0]) is None:
        result = attrs.evolve(result, ids=(*result.ids, rest.pop(0).text))
    done: set[str] = set()
    while rest:
        word = rest.pop(0)
        part = keyword_of(word)
        if part is None:
            raise SelectionError(f"{word.text!r} in column {word.start + 1} is neither of {', '.join(KEYWORDS)}")
        if part in done:
            raise SelectionError(f"{part} is given twice")
        done.add(part)
        if part == "active":
            result = attrs.evolve(result, active=True)
        elif part == "where":
            condition, used = parse_condition(rest) if rest else (None, 0)
            if condition is None:
                raise SelectionError("where needs a condition, e.g. where depth > 100")
            result = attrs.evolve(result, where=condition)
            del rest[:used]
        else:
            taken = _until_keyword(rest)
            result = _take(result, part, taken)
    return result


def _until_keyword(rest: list[Word]) -> list[Word]:
    taken = []
    while rest and keyword_of(rest[0]) is None:
        taken.append(rest.pop(0))
    return taken


def _take(result: Selection, part: str, words: Sequence[Word]) -> Selection:
    texts = [text for word in words for text in re.split(r"[,\s]+", word.text) if text]
    if part == "limit":
        if len(texts) != 1 or not re.fullmatch("[0-9]{1,9}", texts[0]):
            raise SelectionError("limit needs a number, e.g. limit 10")
        return attrs.evolve(result, limit=int(texts[0]))
    if part == "columns":
        if not texts:
            raise SelectionError("columns needs names of values, e.g. columns name, depth; or all")
        return attrs.evolve(result, columns=tuple(dict.fromkeys(texts)))
    if texts and texts[0].lower() == "by" and len(texts) > 1:
        del texts[0]
    order: list[SortKey] = []
    for text in texts:
        if text.lower() in ("asc", "desc") and order:
            order[-1] = attrs.evolve(order[-1], down=text.lower() == "desc")
        else:
            order.append(SortKey(text))
    if not order:
        raise SelectionError("sort needs the name of a value, e.g. sort depth desc")
    return attrs.evolve(result, order=tuple(order))
