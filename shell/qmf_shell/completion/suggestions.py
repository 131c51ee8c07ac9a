"""Finds the names that complete a request. Never uses the network, never blocks, never fails.

10,000 objects must not cause a delay: an object is compared by its search text (`session.object_names`), which takes
one substring search, and becomes a candidate only if it matches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from pathlib import Path

import attrs

from qmf.schema import Argument, EventSchema, Kind, QmfType, format_value
from qmf.views.conditions.words import quote
from qmf.views.events import SEVERITIES
from qmf.views.fields import COMMON_FIELDS
from qmf.views.objects import ObjectIdentity
from qmf.views.text import one_line
from qmf_shell.completion.data import (
    CompletionData,
    argument_of,
    classes_of,
    field_of,
    free_inputs,
    method_of,
    settable_properties,
    settable_property,
    setting_called,
    target_fields,
)
from qmf_shell.completion.kinds import (
    AnyOf,
    ArgumentNames,
    ArgumentValue,
    ClassNames,
    CommandNames,
    CompletionKind,
    CompletionRequest,
    ContextNames,
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
from qmf_shell.objects.schema_text import about_argument, about_field, about_method
from qmf_shell.parsing.command import AnyCommand
from qmf_shell.session.name_cache import NameSnapshot
from qmf_shell.session.object_names import MARK, names_class
from qmf_shell.settings import SETTINGS

#: The rank of candidates that contain the typed text in the middle; lower ranks begin with it.
RANK_MIDDLE = 2


@attrs.frozen
class Candidate:
    """A name before it is compared with the typed text.

    Attributes:
        text: the text to insert into the line.
        meta: its description.
        also: other texts that find it.
        raw: `text` needs no quotes.
        anywhere: the typed text may be in the middle, too.
    """

    text: str
    meta: str = ""
    also: tuple[str, ...] = ()
    raw: bool = False
    anywhere: bool = True


def class_candidates(snapshot: NameSnapshot, *, objects: bool, events: bool) -> list[Candidate]:
    """Classes of objects, of events, or of both; with their package if several packages have the same name."""
    kinds = {kind for kind, wanted in ((Kind.DATA, objects), (Kind.EVENT, events)) if wanted}
    found = [key for key in sorted(snapshot.schemas) if key.kind in kinds]
    packages: dict[str, set[str]] = {}
    for key in found:
        packages.setdefault(key.name.lower(), set()).add(key.package)
    names: dict[str, Candidate] = {}
    for key in found:
        full_name = f"{key.package}:{key.name}"
        text = full_name if len(packages[key.name.lower()]) > 1 else key.name
        schema = snapshot.schemas[key]
        about = schema.desc if schema and schema.desc else full_name
        if key.kind is Kind.EVENT and objects:
            about = f"event: {about}"
        names[text] = Candidate(text, about, (key.name, full_name))
    return list(names.values())


def object_candidates(
    data: CompletionData, of_class: str | None, prefix: str, limit: int
) -> list[tuple[int, Candidate]]:
    """Objects with their ranks: by short id if they have one, then the others by their index.

    Args:
        of_class: only objects of the class with this name; None for any.
        prefix: the typed text, in lower case.
        limit: how many to return at most.
    """
    numbered = list(itertools.islice(_numbered_objects(data, of_class, prefix), limit))
    if len(numbered) == limit:
        return numbered
    by_index = list(itertools.islice(_by_index(data, of_class, prefix), limit - len(numbered)))
    return numbered + by_index or list(itertools.islice(_by_middle(data, of_class, prefix), limit))


def _numbered_objects(data: CompletionData, of_class: str | None, prefix: str) -> Iterator[tuple[int, Candidate]]:
    """Objects with short ids."""
    for entry in data.ids.entries():
        identity = entry.identity
        if not entry.deleted and MARK + prefix in entry.search and _is_class(identity, of_class):
            about = f"{identity.class_key.name} {identity.index} {identity.title}"
            yield 0 if str(entry.number).startswith(prefix) else 1, Candidate(str(entry.number), about)


def _by_index(data: CompletionData, of_class: str | None, prefix: str) -> Iterator[tuple[int, Candidate]]:
    """Objects without short ids, of which a name begins with the typed text."""
    for identity in _without_number(data, of_class, MARK + prefix):
        candidate = _object_candidate(data, identity, of_class)
        yield 0 if candidate.text.lower().startswith(prefix) else 1, candidate


def _by_middle(data: CompletionData, of_class: str | None, prefix: str) -> Iterator[tuple[int, Candidate]]:
    """Objects without short ids, of which a name contains the typed text."""
    for identity in _without_number(data, of_class, prefix):
        yield RANK_MIDDLE, _object_candidate(data, identity, of_class)


def _without_number(data: CompletionData, of_class: str | None, text: str) -> Iterator[ObjectIdentity]:
    """Objects without short ids whose searched text contains `text`."""
    for identity, search in zip(data.snapshot.objects, data.snapshot.searches, strict=True):
        if text in search and _is_class(identity, of_class) and data.ids.number(identity.key) is None:
            yield identity


def _is_class(identity: ObjectIdentity, of_class: str | None) -> bool:
    return of_class is None or names_class(of_class, identity.class_key)


def _object_candidate(data: CompletionData, identity: ObjectIdentity, of_class: str | None) -> Candidate:
    """An object by its index if that is enough to find it, else with its class."""
    unique = of_class is not None or (data.snapshot.uses[identity.index] == 1 and not identity.index.isdigit())
    text = identity.index if unique and identity.index else f"{identity.class_key.name}:{identity.index}"
    return Candidate(text, f"{identity.class_key.name} {identity.title}")


#: More names than this are not helpful; more typed text narrows them.
MAX_SUGGESTIONS = 300
#: Files of a folder that are examined, at most.
_MAX_FILES = 2000


@attrs.frozen
class Suggestion:
    """One entry of the completion menu.

    Attributes:
        text: the text to insert into the line.
        shown: the text in the menu.
        meta: its description.
        start: column where the completed text begins.
    """

    text: str
    shown: str
    meta: str
    start: int


#: What every command takes.
_FORMATS = [
    Candidate(f"--{name}", f"this result as {shown}", raw=True, anywhere=False)
    for name, shown in (("json", "JSON"), ("csv", "CSV"), ("yaml", "YAML"), ("table", "a table"))
]


def suggest(request: CompletionRequest, data: CompletionData) -> list[Suggestion]:
    """The names that begin with the typed text, the best first; if there are none, those that contain it."""
    prefix = request.prefix.lower()
    ranked: list[tuple[int, Candidate]] = []
    kinds = request.kind.kinds if isinstance(request.kind, AnyOf) else (request.kind,)
    for kind in kinds:
        if isinstance(kind, ObjectNames):
            # Objects leave room for other kinds.
            limit = MAX_SUGGESTIONS if len(kinds) == 1 else MAX_SUGGESTIONS * 2 // 3
            ranked += object_candidates(data, kind.of_class, prefix, limit)
        else:
            candidates = _candidates(kind, data, request.prefix)
            ranked += [(rank, item) for item in candidates if (rank := _rank(item, prefix)) is not None]
    # Sorting is stable: within a rank, names stay in the order of their kinds.
    ranked.sort(key=lambda pair: pair[0])
    if ranked and ranked[0][0] < RANK_MIDDLE:
        ranked = [pair for pair in ranked if pair[0] < RANK_MIDDLE]
    found: dict[str, Suggestion] = {}
    for _, item in ranked[:MAX_SUGGESTIONS]:
        text = item.text if item.raw else quote(item.text)
        found.setdefault(text, Suggestion(text, one_line(item.text), one_line(item.meta), request.start))
    return list(found.values())


def _rank(candidate: Candidate, prefix: str) -> int | None:
    texts = [text.lower() for text in (candidate.text, *candidate.also)]
    if texts[0].startswith(prefix):
        return 0
    if any(text.startswith(prefix) for text in texts[1:]):
        return 1
    return RANK_MIDDLE if candidate.anywhere and any(prefix in text for text in texts) else None


def _candidates(kind: CompletionKind, data: CompletionData, typed: str) -> Iterable[Candidate]:
    match kind:
        case CommandNames():
            return _commands(data)
        case OptionNames(command):
            return _options(command)
        case OptionValue(option):
            severities = list(SEVERITIES)[:8] if option.value == "SEVERITY" else []
            return [Candidate(name, anywhere=False) for name in severities]
        case ClassNames(objects, events):
            return class_candidates(data.snapshot, objects=objects, events=events)
        case MethodNames(target):
            methods = {item.name: item for schema in classes_of(data, target) for item in schema.methods}
            return [Candidate(item.name, about_method(item)) for item in methods.values()]
        case ContextNames():
            return [Candidate(name, ", ".join(urls)) for name, urls in data.contexts]
        case SettingNames():
            return [Candidate(item.name, item.help) for item in SETTINGS]
        case SettingValue(name):
            setting = setting_called(name)
            return [Candidate(value, anywhere=False) for value in setting.values] if setting else []
        case Keywords(words):
            return [Candidate(word, meta, raw=True, anywhere=False) for word, meta in words]
        case FileNames():
            return _files(typed)
        case _:
            return _value_candidates(kind, data, typed)


def _commands(data: CompletionData) -> list[Candidate]:
    commands = [Candidate(command.name, command.summary, anywhere=False) for command in data.registry]
    return commands + [Candidate(name, f"alias of {text}", anywhere=False) for name, text in data.aliases]


def _options(command: AnyCommand) -> list[Candidate]:
    options = [Candidate(item.names[-1], item.help, item.names[:-1], raw=True) for item in command.options]
    return [*options, *_FORMATS, Candidate("--help", "explain the command", raw=True)]


def _value_candidates(kind: CompletionKind, data: CompletionData, typed: str) -> Iterable[Candidate]:
    """Candidates for arguments of methods, values of objects, arguments of events, and what they may be."""
    match kind:
        case ArgumentNames():
            return _argument_names(kind, data)
        case ArgumentValue(target, method, name):
            found = argument_of(data, target, method, name)
            return _argument_values(found[1], data, typed.lower()) if found else []
        case ValueNames(target, numbers):
            fields = [item for item in target_fields(data, target) if item.is_number or not numbers]
            common = () if numbers else COMMON_FIELDS
            return [
                *(Candidate(field.name, about_field(field)) for field in fields),
                *(Candidate(name, "of every object") for name in common),
            ]
        case ValueOf(target, name):
            field = field_of(data, target, name)
            return _values_of_type(field.type, field.name) if field and field.type else []
        case SettableNames(target, used):
            items = [item for item in settable_properties(data, target) if item.name not in used]
            return [Candidate(f"{item.name}=", about_argument(item), raw=True, anywhere=False) for item in items]
        case SettableValue(target, name):
            prop = settable_property(data, target, name)
            return _values_of_type(prop.type, prop.name) if prop else []
        case EventValueNames(classes):
            return _event_values(data, classes)
        case _:
            return []


def _argument_names(kind: ArgumentNames, data: CompletionData) -> list[Candidate]:
    method = method_of(data, kind.target, kind.method)
    if method is None:
        return []
    free = free_inputs(method, kind)
    names = [Candidate(f"{item.name}=", about_argument(item), raw=True, anywhere=False) for item in free]
    return names + (_argument_values(free[0], data) if free else [])


def _argument_values(item: Argument, data: CompletionData, prefix: str = "") -> list[Candidate]:
    if item.type.name == "objId":
        of_class = str(item.references) if item.references else None
        found = object_candidates(data, of_class, prefix, MAX_SUGGESTIONS)
        # They were compared with the typed text already, by more names than the one that is inserted.
        return [attrs.evolve(candidate, also=(prefix,)) for _, candidate in found]
    values = _values_of_type(item.type, item.name)
    return (
        values if values or item.default is None else [Candidate(format_value(item.default), f"default of {item.name}")]
    )


def _values_of_type(kind: QmfType, name: str) -> list[Candidate]:
    return [Candidate(text, name, anywhere=False) for text in ("true", "false")] if kind.name == "bool" else []


def _event_values(data: CompletionData, classes: Iterable[str]) -> list[Candidate]:
    wanted = {name.lower().rpartition(":")[2] for name in classes}
    schemas = [item for item in data.snapshot.schemas.values() if isinstance(item, EventSchema)]
    return [
        *(
            Candidate(item.name, about_argument(item))
            for schema in schemas
            if not wanted or schema.name.lower() in wanted
            for item in schema.arguments
        ),
        Candidate("severity", "emerg to debug"),
        Candidate("class", "package:name"),
        Candidate("agent", "the agent that raised it"),
    ]


def _files(typed: str) -> list[Candidate]:
    """The files whose path begins with the typed text. Reads one folder, at most so many of its entries."""
    folder, slash, front = typed.rpartition("/")
    base = Path(folder + slash).expanduser() if slash else Path()
    names: list[Candidate] = []
    try:
        for number, path in enumerate(base.iterdir()):
            if number >= _MAX_FILES:
                break
            if path.name.startswith(front) and (front or not path.name.startswith(".")):
                end = "/" if path.is_dir() else ""
                names.append(Candidate(f"{folder}{slash}{path.name}{end}", "folder" if end else "file"))
    except OSError:
        return []
    return sorted(names, key=lambda name: name.text)
