"""`list`: classes with how many objects they have, the objects of a class, or some objects in full."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Sequence

from qmf.schema import Kind
from qmf_shell.commands.show import show_objects
from qmf_shell.registry import Command, Given, Option, Parameter, Takes
from qmf_shell.results import Cell, Column, Group, Instant, Result, Role, Table
from qmf_shell.session.context import Context
from qmf_shell.session.ids import Entry
from qmf_shell.session.lookup import class_name, class_names, find_classes, find_object
from qmf_shell.session.source import Object
from qmf_shell.text import plural

_CLASSES = (Column("Package", Role.FAINT), Column("Class", Role.NAME), Column("Active", Role.NUMBER))
_ID = Column("ID", Role.ID)
_TIMES = (Column("Created", Role.TIME), Column("Destroyed", Role.TIME))
_INDEX = Column("Index", Role.NAME, wraps=True)
_TITLE = Column("Name", wraps=True)
_AGENT = Column("Agent", Role.FAINT, wraps=True)


def run(context: Context, given: Given) -> Result:
    """Classes, a class's objects, or objects."""
    name = given.text(0)
    if name is None:
        return _list_classes(context)
    keys = find_classes(context.classes(), name)
    if len(given.words) > 1:
        return show_objects([find_object(context, text, classes=keys) for text in given.texts[1:]], context)
    with_dead = "active" not in given.options
    tables = tuple(_list_objects(context, package, name, with_dead) for package, name in class_names(keys))
    return tables[0] if len(tables) == 1 else Group(tables)


def _list_classes(context: Context) -> Table:
    names = class_names(sorted(key for key in context.classes() if key.kind is Kind.DATA))
    counts = collections.Counter(class_name(item.known) for item in context.objects(names))
    rows = tuple((package, name, counts[package, name]) for package, name in names)
    return Table(_CLASSES, rows, title="Objects by class", empty="No classes so far: no agent has told of one.")


def _list_objects(context: Context, package: str, name: str, with_dead: bool) -> Table:
    living = sorted(context.objects([(package, name)]), key=lambda item: _order(item.known.index))
    numbered = [(context.ids.give(item.known, item.created), item) for item in living]
    dead = _dead(context, package, name, living) if with_dead else []
    named = any(item.known.title for item in living)
    several = len({item.known.key.agent for item in living} | {entry.known.key.agent for entry in dead}) > 1
    rows: list[tuple[Cell, ...]] = []
    for number, item in numbered:
        known = item.known
        rows.append((number, Instant(item.created), None, known.index, known.title, known.key.agent))
    for entry in dead:
        known = entry.known
        times = Instant(entry.created), Instant(entry.deleted)
        rows.append((entry.number, *times, known.index, known.title, known.key.agent))
    shown = [True, True, True, True, named, several]
    columns = tuple(itertools.compress((_ID, *_TIMES, _INDEX, _TITLE, _AGENT), shown))
    title = f"{package}:{name}, {plural(len(living), 'object')}" + (f", {len(dead)} destroyed" if dead else "")
    return Table(
        columns,
        tuple(tuple(itertools.compress(row, shown)) for row in rows),
        title=title,
        empty=f"No objects of {package}:{name}.",
    )


def _dead(context: Context, package: str, name: str, living: Sequence[Object]) -> list[Entry]:
    """Objects of the class that have a number and were seen to be destroyed."""
    alive = {item.known.key for item in living}
    return [
        entry
        for entry in context.ids.entries()
        if entry.deleted and entry.known.key not in alive and class_name(entry.known) == (package, name)
    ]


def _order(index: str) -> tuple[tuple[int, int, str], ...]:
    """Sorts ``eth2`` before ``eth10``."""
    parts: list[tuple[int, int, str]] = []
    digits = text = ""
    for char in index:
        if char.isascii() and char.isdigit():
            if text:
                parts.append((1, 0, text))
            digits, text = digits + char, ""
        else:
            if digits:
                parts.append((0, int(digits[:40]), digits))
            digits, text = "", text + char
    parts.append((0, int(digits[:40]), digits) if digits else (1, 0, text))
    return tuple(parts)


LIST = Command(
    name="list",
    usage=("list [-a] [CLASS [ID...]]",),
    summary="List classes, objects of a class, or objects in full",
    help=(
        "Alone, it lists the classes with how many objects of each there are now.",
        "With a class, it lists the objects and gives each a short id, which stays the same until you leave. "
        "Objects that you have listed before and that were destroyed since are shown with the time when they were.",
        "With ids as well, it shows these objects side by side. Instead of an id you can write an object's index.",
    ),
    examples=(
        ("list", "every class with its number of objects"),
        ("list filesystem", "the mounted filesystems"),
        ("list filesystem / /home", "two of them, side by side"),
        ("list org.apache.qpid.broker:queue", "a class that several packages have"),
    ),
    parameters=(
        Parameter("CLASS", Takes.CLASS, "a class, or package:class"),
        Parameter("ID", Takes.OBJECT, "short ids, or indexes of objects", many=True),
    ),
    options=(Option(("-a", "--active"), "leave out what was destroyed"),),
    handler=run,
)
