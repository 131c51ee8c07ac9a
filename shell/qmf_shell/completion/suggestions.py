"""Names for a kind of suggestion, from what the session knows. Never asks the network, never blocks, never fails.

10,000 objects must not be felt: an object is compared by its search text (`session.names`), which costs one look, and
turned into a suggestion only when it is shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import attrs

from qmf.schema import Access, Argument, ClassSchema, EventSchema, Kind, Method, Property, QmfType
from qmf_shell.commands.call import find_method
from qmf_shell.completion.kinds import (
    AnyOf,
    ArgumentNames,
    ArgumentValue,
    ClassNames,
    CommandNames,
    CompletionKind,
    CompletionRequest,
    EventValueNames,
    FileNames,
    Keywords,
    MethodNames,
    ObjectNames,
    OptionNames,
    OptionValue,
    SettableNames,
    SettableValue,
    SettingNames,
    SettingValue,
    ValueNames,
    ValueOf,
)
from qmf_shell.completion.schema_text import about_argument, about_field, about_method
from qmf_shell.objects.event_filter import SEVERITIES
from qmf_shell.objects.filtering import COMMON_FIELDS, ObjectField, fields_of
from qmf_shell.parsing.command import Registry
from qmf_shell.parsing.method_arguments import value_text
from qmf_shell.parsing.words import quote
from qmf_shell.session.backend import ObjectIdentity
from qmf_shell.session.name_cache import NameSnapshot
from qmf_shell.session.object_names import MARK, names_of
from qmf_shell.session.short_ids import ShortIds
from qmf_shell.settings import SETTINGS
from qmf_shell.text import one_line

#: More names than this help nobody; typing on narrows them.
MAX_SUGGESTIONS = 300
#: Names in a folder that are looked at.
_FILES = 2000
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
class Candidate:
    """A candidate before it is compared with what was typed.

    Attributes:
        text: what is put into the line.
        meta: what it is.
        also: other texts to find it by.
        raw: `text` needs no quotes.
        anywhere: the text may be found in the middle, too.
    """

    text: str
    meta: str = ""
    also: tuple[str, ...] = ()
    raw: bool = False
    anywhere: bool = True


@attrs.frozen
class CompletionData:
    """Everything that names come from.

    Attributes:
        snapshot: classes and objects.
        ids: short ids.
        registry: commands.
        aliases: words that stand for commands, with what they stand for.
    """

    snapshot: NameSnapshot
    ids: ShortIds
    registry: Registry
    aliases: Sequence[tuple[str, str]] = ()


def suggest(request: CompletionRequest, data: CompletionData) -> list[Suggestion]:
    """What begins with the typed text, the best first; where nothing does, what has it in the middle."""
    prefix = request.prefix.lower()
    ranked: list[tuple[int, Candidate]] = []
    kinds = request.kind.kinds if isinstance(request.kind, AnyOf) else (request.kind,)
    for kind in kinds:
        if isinstance(kind, ObjectNames):
            # Objects leave room for other kinds.
            ranked += _objects(
                data, kind.of_class, prefix, MAX_SUGGESTIONS if len(kinds) == 1 else MAX_SUGGESTIONS * 2 // 3
            )
        else:
            ranked += [
                (rank, name) for name in _names(kind, data, request.prefix) if (rank := _rank(name, prefix)) is not None
            ]
    # Sorting is stable: within a rank, names stay in the order of their kinds.
    ranked.sort(key=lambda pair: pair[0])
    if ranked and ranked[0][0] < _MIDDLE:
        ranked = [pair for pair in ranked if pair[0] < _MIDDLE]
    found: dict[str, Suggestion] = {}
    for _, name in ranked[:MAX_SUGGESTIONS]:
        text = name.text if name.raw else quote(name.text)
        found.setdefault(text, Suggestion(text, one_line(name.text), one_line(name.meta), request.start))
    return list(found.values())


def _rank(name: Candidate, prefix: str) -> int | None:
    texts = [text.lower() for text in (name.text, *name.also)]
    if texts[0].startswith(prefix):
        return 0
    if any(text.startswith(prefix) for text in texts[1:]):
        return 1
    return _MIDDLE if name.anywhere and any(prefix in text for text in texts) else None


def _names(wanted: CompletionKind, data: CompletionData, typed: str) -> Iterable[Candidate]:
    snapshot = data.snapshot
    match wanted:
        case CommandNames():
            commands = [Candidate(command.name, command.summary, anywhere=False) for command in data.registry]
            return commands + [Candidate(name, f"alias of {text}", anywhere=False) for name, text in data.aliases]
        case OptionNames(command):
            options = [Candidate(item.names[-1], item.help, item.names[:-1], raw=True) for item in command.options]
            return [*options, Candidate("--help", "what the command does", raw=True)]
        case OptionValue(option):
            severities = option.value == "SEVERITY"
            return [Candidate(word, anywhere=False) for word in list(SEVERITIES)[:8]] if severities else []
        case ClassNames(objects, events):
            return _class_names(snapshot, objects=objects, events=events)
        case MethodNames(target):
            methods = {item.name: item for schema in classes_of(data, target) for item in schema.methods}
            return [Candidate(item.name, about_method(item)) for item in methods.values()]
        case ArgumentNames():
            return _argument_names(wanted, data)
        case ArgumentValue(target, method, name):
            found = method_of(data, target, method)
            item = next((item for item in found.inputs if item.name == name), None) if found else None
            return _value_names(item, data, typed.lower()) if item else []
        case ValueNames(target, numbers):
            return [
                Candidate(field.name, about_field(field))
                for field in _fields(data, target)
                if field.is_number or not numbers
            ] + ([] if numbers else [Candidate(name, "of every object") for name in COMMON_FIELDS])
        case ValueOf(target, name):
            field = next((item for item in _fields(data, target) if item.name.lower() == name.lower()), None)
            return _of_type(field.type, field.name) if field and field.type else []
        case SettableNames(target, used):
            items = [item for item in _settable(data, target) if item.name not in used]
            return [Candidate(f"{item.name}=", about_argument(item), raw=True, anywhere=False) for item in items]
        case SettableValue(target, name):
            prop = next((item for item in _settable(data, target) if item.name == name), None)
            return _of_type(prop.type, prop.name) if prop else []
        case _:
            return _other_names(wanted, data, typed)


def _other_names(wanted: CompletionKind, data: CompletionData, typed: str) -> Iterable[Candidate]:
    match wanted:
        case EventValueNames(classes):
            schemas = [item for item in data.snapshot.schemas.values() if isinstance(item, EventSchema)]
            wanted_ = {name.lower().rpartition(":")[2] for name in classes}
            return [
                Candidate(item.name, about_argument(item))
                for schema in schemas
                if not wanted_ or schema.name.lower() in wanted_
                for item in schema.arguments
            ] + [
                Candidate("severity", "emerg to debug"),
                Candidate("class", "package:name"),
                Candidate("agent", "who raised it"),
            ]
        case SettingNames():
            return [Candidate(item.name, item.help) for item in SETTINGS]
        case SettingValue(name):
            choice = next((item for item in SETTINGS if item.name == name.lower()), None)
            return [Candidate(value, anywhere=False) for value in choice.values] if choice else []
        case Keywords(words):
            return [Candidate(word, meta, raw=True, anywhere=False) for word, meta in words]
        case FileNames():
            return _files(typed)
        case _:
            return []


# -- classes and objects -----------------------------------------------------------------------------------------------


def _class_names(snapshot: NameSnapshot, *, objects: bool, events: bool) -> list[Candidate]:
    wanted = {kind for kind, take in ((Kind.DATA, objects), (Kind.EVENT, events)) if take}
    found = [key for key in sorted(snapshot.schemas) if key.kind in wanted]
    packages: dict[str, set[str]] = {}
    for key in found:
        packages.setdefault(key.name.lower(), set()).add(key.package)
    names: dict[str, Candidate] = {}
    for key in found:
        whole = f"{key.package}:{key.name}"
        text = whole if len(packages[key.name.lower()]) > 1 else key.name
        schema = snapshot.schemas[key]
        about = schema.desc if schema and schema.desc else whole
        if key.kind is Kind.EVENT and objects:
            about = f"event: {about}"
        names[text] = Candidate(text, about, (key.name, whole))
    return list(names.values())


def _objects(
    data: CompletionData, of_class: str | None, prefix: str, most: int = MAX_SUGGESTIONS
) -> list[tuple[int, Candidate]]:
    """Objects by short id where they have one, then the others by their key text: those that fit, and no more."""
    front = MARK + prefix
    found: list[tuple[int, Candidate]] = []
    for entry in data.ids.entries():
        identity = entry.identity
        if entry.deleted or prefix not in entry.search or (of_class is not None and not is_class(identity, of_class)):
            continue
        if front in entry.search:
            rank = 0 if str(entry.number).startswith(prefix) else 1
            found.append(
                (rank, Candidate(str(entry.number), f"{identity.class_key.name} {identity.index} {identity.title}"))
            )
            if len(found) >= most:
                return found
    middle: list[ObjectIdentity] = []
    for identity, search in zip(data.snapshot.objects, data.snapshot.searches, strict=True):
        if prefix not in search or (of_class is not None and not is_class(identity, of_class)):
            continue
        if front not in search:
            if not found and len(middle) < most:
                middle.append(identity)
            continue
        if data.ids.number(identity.key) is None:
            found.append((_front_rank(data, identity, of_class, prefix), _object_name(data, identity, of_class)))
            if len(found) >= most:
                break
    return found or [
        (_MIDDLE, _object_name(data, identity, of_class))
        for identity in middle
        if data.ids.number(identity.key) is None
    ]


def _front_rank(data: CompletionData, identity: ObjectIdentity, of_class: str | None, prefix: str) -> int:
    return 0 if _written(data, identity, of_class).lower().startswith(prefix) else 1


def _written(data: CompletionData, identity: ObjectIdentity, of_class: str | None) -> str:
    """How to write an object: just its key text where that is enough to find it."""
    unique = of_class is not None or (data.snapshot.uses[identity.index] == 1 and not identity.index.isdigit())
    return identity.index if unique and identity.index else f"{identity.class_key.name}:{identity.index}"


def _object_name(data: CompletionData, identity: ObjectIdentity, of_class: str | None) -> Candidate:
    return Candidate(_written(data, identity, of_class), f"{identity.class_key.name} {identity.title}")


def is_class(identity: ObjectIdentity, text: str) -> bool:
    """Whether `text` names the class of an object."""
    package, _, name = text.lower().rpartition(":")
    return identity.class_key.name.lower() == name and package in ("", identity.class_key.package.lower())


def classes_of(data: CompletionData, target: str) -> list[ClassSchema]:
    """The classes of every object that `target` could name; the class itself where it names one."""
    front = target.replace(",", "-").partition("-")[0]
    digits = target if target.isdigit() else front
    entry = data.ids.entry(int(digits)) if digits.isascii() and digits.isdigit() else None
    schemas: dict[int, ClassSchema] = {}
    if entry is not None:
        keys = [entry.identity.class_key]
    else:
        package, _, name = target.lower().rpartition(":")
        keys = [
            key
            for key in data.snapshot.schemas
            if key.kind is Kind.DATA and key.name.lower() == name and package in ("", key.package.lower())
        ]
        if not keys:
            front = MARK + target.lower()
            keys = [
                identity.class_key
                for identity, search in zip(data.snapshot.objects, data.snapshot.searches, strict=True)
                if (front in search or ":" in target) and target in names_of(identity)
            ]
    for key in keys:
        schema = data.snapshot.schemas.get(key)
        if isinstance(schema, ClassSchema):
            schemas[id(schema)] = schema
    return list(schemas.values())


def method_of(data: CompletionData, target: str, method: str) -> Method | None:
    """The method that a call of `target` means."""
    for schema in classes_of(data, target):
        found = find_method(schema.methods, method)
        if found is not None:
            return found
    return None


def _fields(data: CompletionData, target: str) -> Iterator[ObjectField]:
    seen: set[str] = set()
    for schema in classes_of(data, target):
        for field in fields_of(schema).values():
            if field.name not in seen:
                seen.add(field.name)
                yield field


def _settable(data: CompletionData, target: str) -> list[Property]:
    return [item for schema in classes_of(data, target) for item in schema.properties if item.access is Access.RW]


# -- arguments and values ----------------------------------------------------------------------------------------------


def free_inputs(method: Method, wanted: ArgumentNames) -> list[Argument]:
    """The inputs that have no value yet, the next one first."""
    return [item for item in method.inputs if item.name not in wanted.used][wanted.position :]


def _argument_names(wanted: ArgumentNames, data: CompletionData) -> list[Candidate]:
    method = method_of(data, wanted.target, wanted.method)
    if method is None:
        return []
    free = free_inputs(method, wanted)
    names = [Candidate(f"{item.name}=", about_argument(item), raw=True, anywhere=False) for item in free]
    return names + (_value_names(free[0], data) if free else [])


def _value_names(item: Argument, data: CompletionData, prefix: str = "") -> list[Candidate]:
    if item.type.name == "objId":
        found = _objects(data, str(item.references) if item.references else None, prefix)
        # They were compared with what was typed already, by more names than the one that is put into the line.
        return [attrs.evolve(name, also=(prefix,)) for _, name in found]
    words = _of_type(item.type, item.name)
    return words if words or item.default is None else [Candidate(value_text(item.default), f"default of {item.name}")]


def _of_type(kind: QmfType, name: str) -> list[Candidate]:
    return [Candidate(word, name, anywhere=False) for word in ("true", "false")] if kind.name == "bool" else []


def _files(typed: str) -> list[Candidate]:
    """Files that a path could mean. Reads a folder, at most so many of its names."""
    folder, slash, front = typed.rpartition("/")
    base = Path(folder + slash).expanduser() if slash else Path()
    names: list[Candidate] = []
    try:
        for number, path in enumerate(base.iterdir()):
            if number >= _FILES:
                break
            if path.name.startswith(front) and (front or not path.name.startswith(".")):
                end = "/" if path.is_dir() else ""
                names.append(Candidate(f"{folder}{slash}{path.name}{end}", "folder" if end else "file"))
    except OSError:
        return []
    return sorted(names, key=lambda name: name.text)
