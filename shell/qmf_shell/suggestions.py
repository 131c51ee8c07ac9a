"""Names for a kind of suggestion, from what the session knows. Never asks the network, never blocks, never fails."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from qmf.schema import Argument, ClassSchema, Kind, Method
from qmf_shell.arguments import value_text
from qmf_shell.commands.call import find_method
from qmf_shell.completion import (
    ArgumentNames,
    ArgumentValue,
    ClassNames,
    CommandNames,
    MethodNames,
    ObjectNames,
    OptionNames,
    Question,
)
from qmf_shell.parsing import quote
from qmf_shell.registry import Registry
from qmf_shell.session.ids import Ids
from qmf_shell.session.lookup import names_of
from qmf_shell.session.snapshot import Snapshot
from qmf_shell.session.source import Known
from qmf_shell.text import one_line, plural

#: More names than this help nobody; typing on narrows them.
MOST = 300
_MIDDLE = 2


@attrs.frozen
class Suggestion:
    """One thing that Tab offers.

    Attributes:
        text: what is put into the line.
        shown: what the menu shows.
        meta: what it is, in a few words.
        start: where the completed text begins in the line.
    """

    text: str
    shown: str
    meta: str
    start: int


@attrs.frozen
class _Name:
    """A candidate before it is compared with what was typed.

    Attributes:
        text: what is put into the line.
        meta: what it is.
        also: other texts to find it by.
        raw: `text` needs no quotes.
        shown: what the menu shows; `text` where empty.
        anywhere: the text may be found in the middle, too.
    """

    text: str
    meta: str = ""
    also: tuple[str, ...] = ()
    raw: bool = False
    shown: str = ""
    anywhere: bool = True


def suggest(question: Question, snapshot: Snapshot, ids: Ids, registry: Registry) -> list[Suggestion]:
    """What begins with the typed text, the best first; where nothing does, what has it in the middle."""
    names = _names(question, snapshot, ids, registry)
    prefix = question.prefix.lower()
    ranked: list[tuple[int, Suggestion]] = []
    for name in names:
        rank = _rank(name, prefix)
        if rank is None:
            continue
        text = name.text if name.raw else quote(name.text)
        shown = one_line(name.shown or name.text)
        ranked.append((rank, Suggestion(text, shown, one_line(name.meta), question.start)))
    ranked.sort(key=lambda pair: pair[0])
    if ranked and ranked[0][0] < _MIDDLE:
        ranked = [pair for pair in ranked if pair[0] < _MIDDLE]
    return [suggestion for _, suggestion in ranked[:MOST]]


def _rank(name: _Name, prefix: str) -> int | None:
    texts = [text.lower() for text in (name.text, *name.also)]
    if texts[0].startswith(prefix):
        return 0
    if any(text.startswith(prefix) for text in texts[1:]):
        return 1
    return _MIDDLE if name.anywhere and any(prefix in text for text in texts) else None


def _names(question: Question, snapshot: Snapshot, ids: Ids, registry: Registry) -> Iterable[_Name]:
    match question.wanted:
        case CommandNames():
            return [_Name(command.name, command.summary, anywhere=False) for command in registry]
        case OptionNames(command):
            return [_Name(item.names[-1], item.help, item.names[:-1], raw=True) for item in command.options]
        case ClassNames(objects, events):
            return _class_names(snapshot, objects=objects, events=events)
        case ObjectNames(of_class):
            return _object_names(snapshot, ids, of_class)
        case MethodNames(target):
            methods = {item.name: item for schema in _classes_of(snapshot, ids, target) for item in schema.methods}
            return [_Name(item.name, _about(item)) for item in methods.values()]
        case ArgumentNames():
            return _argument_names(question.wanted, snapshot, ids)
        case ArgumentValue(target, method, name):
            found = _find_method(snapshot, ids, target, method)
            item = next((item for item in found.inputs if item.name == name), None) if found else None
            return _value_names(item, snapshot, ids) if item else []
        case _:
            return []


def _class_names(snapshot: Snapshot, *, objects: bool, events: bool) -> list[_Name]:
    wanted = {kind for kind, take in ((Kind.DATA, objects), (Kind.EVENT, events)) if take}
    found = [key for key in sorted(snapshot.schemas) if key.kind in wanted]
    packages: dict[str, set[str]] = {}
    for key in found:
        packages.setdefault(key.name.lower(), set()).add(key.package)
    names: dict[str, _Name] = {}
    for key in found:
        whole = f"{key.package}:{key.name}"
        text = whole if len(packages[key.name.lower()]) > 1 else key.name
        schema = snapshot.schemas[key]
        about = schema.desc if schema and schema.desc else whole
        if key.kind is Kind.EVENT and objects:
            about = f"event: {about}"
        names[text] = _Name(text, about, (key.name, whole))
    return list(names.values())


def _object_names(snapshot: Snapshot, ids: Ids, of_class: str | None) -> list[_Name]:
    """Objects by short id where they have one, then the others by their key text."""
    names: list[_Name] = []
    numbered = set()
    for entry in ids.entries():
        known = entry.known
        if entry.deleted or (of_class is not None and not _is_class(known, of_class)):
            continue
        numbered.add(known.key)
        names.append(
            _Name(
                str(entry.number),
                f"{known.class_key.name} {known.index} {known.title}",
                names_of(known)[:2],
                anywhere=False,
            )
        )
    others = [
        known
        for known in snapshot.objects
        if known.key not in numbered and (of_class is None or _is_class(known, of_class))
    ]
    uses: dict[str, int] = {}
    for known in others:
        uses[known.index] = uses.get(known.index, 0) + 1
    for known in others:
        name = known.class_key.name
        unique = of_class is not None or (uses[known.index] == 1 and not known.index.isdigit())
        text = known.index if unique else f"{name}:{known.index}"
        names.append(_Name(text, f"{name} {known.title}", (known.index, f"{name}:{known.index}")))
    return names


def _called(known: Known) -> str:
    return f"{known.class_key.name} {known.index} {known.title}"


def _is_class(known: Known, text: str) -> bool:
    package, _, name = text.lower().rpartition(":")
    return known.class_key.name.lower() == name and package in ("", known.class_key.package.lower())


def _classes_of(snapshot: Snapshot, ids: Ids, target: str) -> list[ClassSchema]:
    """The classes of every object that `target` could name."""
    entry = ids.entry(int(target)) if target.isascii() and target.isdigit() else None
    known = [entry.known] if entry else [item for item in snapshot.objects if target in names_of(item)]
    schemas: dict[int, ClassSchema] = {}
    for item in known:
        schema = snapshot.schemas.get(item.class_key)
        if isinstance(schema, ClassSchema):
            schemas[id(schema)] = schema
    return list(schemas.values())


def _find_method(snapshot: Snapshot, ids: Ids, target: str, method: str) -> Method | None:
    for schema in _classes_of(snapshot, ids, target):
        found = find_method(schema.methods, method)
        if found is not None:
            return found
    return None


def _argument_names(wanted: ArgumentNames, snapshot: Snapshot, ids: Ids) -> list[_Name]:
    method = _find_method(snapshot, ids, wanted.target, wanted.method)
    if method is None:
        return []
    free = [item for item in method.inputs if item.name not in wanted.used][wanted.position :]
    names = [_Name(f"{item.name}=", _typed(item), raw=True, anywhere=False) for item in free]
    return names + (_value_names(free[0], snapshot, ids) if free else [])


def _value_names(item: Argument, snapshot: Snapshot, ids: Ids) -> list[_Name]:
    if item.type.name == "bool":
        return [_Name("true", item.name, anywhere=False), _Name("false", item.name, anywhere=False)]
    if item.type.name == "objId":
        return _object_names(snapshot, ids, str(item.references) if item.references else None)
    return [] if item.default is None else [_Name(value_text(item.default), f"default of {item.name}")]


def _typed(item: Argument) -> str:
    kind = f"reference to {item.references}" if item.references else item.type.name
    parts = [kind, item.unit] if item.unit else [kind]
    if item.default is not None:
        parts.append(f"default {value_text(item.default)}")
    about = f": {item.desc}" if item.desc else ""
    return ", ".join(parts) + about


def _about(method: Method) -> str:
    return method.desc or plural(len(method.inputs), "argument")
