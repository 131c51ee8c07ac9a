"""Finds the classes and objects that the user names.

A class is written ``filesystem``, ``package:filesystem`` or ``package.filesystem``, in any case of letters. An object
is written as its short id, its object name, ``class:index`` or its index; if no index matches, as its property `name`.
A class with one object stands for that object. An existing short id takes precedence over an index of the same digits,
and a class over an object of the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from qmf._natural_order import natural_key
from qmf.errors import CallerError, NotFoundError, QmfError
from qmf.schema import ClassKey, ClassSchema, Kind
from qmf.views.objects import ObjectIdentity, ObjectView
from qmf.views.text import clean, listing, plural
from qmf_shell.objects.fields import WrongWordError
from qmf_shell.session.backend import ClassName
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name, class_names, names_class, names_of
from qmf_shell.session.short_ids import NumberedObject

#: How many candidates an error lists.
SHOWN = 5


class AmbiguousError(CallerError):
    """Several objects have the name that the user typed.

    Attributes:
        text: what was typed.
        candidates: each as ``102 org.example:filesystem /``.
    """

    def __init__(self, text: str, candidates: Sequence[str]) -> None:
        self.text = text
        self.candidates = tuple(candidates)
        super().__init__(text, self.candidates)

    def __str__(self) -> str:
        shown = list(self.candidates[:SHOWN])
        if len(self.candidates) > SHOWN:
            shown.append(f"{len(self.candidates) - SHOWN} more")
        return (
            f"{self.text!r} names {plural(len(self.candidates), 'object')}: {listing(shown, 'and')}; use the short id"
        )


class GoneError(CallerError):
    """An object that has a short id no longer exists.

    Attributes:
        number: its short id.
        name: its class and index, e.g. ``filesystem /media/stick``.
        agent: its agent, if that is gone, so that nobody has reported the object's end; else empty.
    """

    def __init__(self, number: int, name: str, agent: str = "") -> None:
        self.number = number
        self.name = name
        self.agent = agent
        super().__init__(number, name, agent)

    def __str__(self) -> str:
        if self.agent:
            return f"object {self.number} ({self.name}) is lost: its agent {self.agent} is gone"
        return f"object {self.number} ({self.name}) is gone"


def find_classes(keys: Iterable[ClassKey], text: str, kind: Kind | None = Kind.DATA) -> list[ClassKey]:
    """All versions of all classes that `text` names, sorted.

    Args:
        text: see `names_class`.
        kind: classes of objects, of events, or None for both.

    Raises:
        NotFoundError: no class has this name; carries similar names.
        WrongWordError: a class of the other kind has it.
    """
    keys = list(keys)
    existing = sorted(key for key in keys if kind in (None, key.kind))
    found = [key for key in existing if names_class(text, key)]
    if not found:
        package = ":" in text or "." in text
        names = (f"{key.package}:{key.name}" if package else key.name for key in existing)
        what = {Kind.DATA: "class", Kind.EVENT: "event class", None: "class or event class"}[kind]
        if any(names_class(text, key) for key in keys):
            other = "a class of events" if kind is Kind.DATA else "a class of objects"
            raise WrongWordError(f"no {what} {clean(text)!r}: it is {other}")
        raise NotFoundError(what, clean(text), dict.fromkeys(names))
    return found


def matching_classes(context: Context, text: str) -> list[ClassKey]:
    """All versions of the classes of objects that `text` names; empty if it names none."""
    try:
        return find_classes(context.classes(), text)
    except (NotFoundError, WrongWordError):
        return []


def object_label(identity: ObjectIdentity) -> str:
    """An object as written in messages: ``filesystem /``."""
    return clean(f"{identity.class_key.name} {identity.index}")


def full_label(identity: ObjectIdentity) -> str:
    """An object where several classes may have the same name: ``org.example:filesystem /``."""
    return clean(f"{identity.class_key.package}:{identity.class_key.name} {identity.index}".rstrip())


def find_object(
    context: Context,
    text: str,
    *,
    classes: Sequence[ClassKey] = (),
    prefer: Callable[[ClassSchema], bool] | None = None,
) -> ObjectView:
    """The one object that `text` names, with its current values.

    Args:
        text: short id, object name, ``class:index``, index, or a class with one object.
        classes: search only these; empty means all.
        prefer: chooses among several objects by their class; ignored if it rejects all of them.

    Raises:
        NotFoundError: no object has this name.
        GoneError: the object with that short id no longer exists; or only a lost one has this name.
        AmbiguousError: several objects have this name; or it is a class with several objects.
    """
    within = class_names(classes)
    entry = context.ids.entry(int(text)) if text.isascii() and text.isdigit() else None
    if entry is not None and (not within or class_name(entry.identity) in within):
        target = context.backend.get(entry.identity)
        if target is None:
            raise gone_error(context, entry)
        return target
    return _search(context, text, within, prefer)


def gone_error(context: Context, entry: NumberedObject) -> GoneError:
    """The error for an object that has a short id and does not exist any more."""
    lost = context.lost.get(entry.identity.key)
    agent = "" if lost is None else clean(entry.identity.key.agent_name)
    return GoneError(entry.number, object_label(entry.identity), agent)


def _search(
    context: Context, text: str, within: Sequence[ClassName], prefer: Callable[[ClassSchema], bool] | None
) -> ObjectView:
    keys = context.object_classes()
    of_class = _prefer(_objects_of_named_class(context, keys, text, within), prefer)
    if len(of_class) == 1:
        return of_class[0]
    names = within or _likely_classes(keys, text)
    seen = _candidates(context, keys, names, text)
    found: Sequence[ObjectView] = _find_named(seen, text)
    if not found:
        # An agent may give its objects any names. And an error lists similar ones: for this all must be known.
        seen = context.objects(names, everything=True)
        found = _find_named(seen, text)
    found = _prefer(found, prefer) or of_class
    if len(found) > 1:
        raise _ambiguous(context, text, found)
    if not found:
        _refuse_lost(context, text, within)
        classes = [] if within or ":" in text else [name for _, name in class_names(keys)]
        raise NotFoundError("object", clean(text), [*(clean(item.identity.index) for item in seen), *classes])
    return found[0]


def _objects_of_named_class(
    context: Context, keys: Sequence[ClassKey], text: str, within: Sequence[ClassName]
) -> Sequence[ObjectView]:
    """The objects of the classes that a text names."""
    names = class_names(key for key in keys if names_class(text, key))
    if within:
        names = [name for name in names if name in within]
    return context.objects(names, everything=True) if names else []


def _refuse_lost(context: Context, text: str, within: Sequence[ClassName]) -> None:
    """Say so if no existing object has a name, but a lost one."""
    for item in context.lost.of():
        identity = item.identity
        if text in names_of(identity) and (not within or class_name(identity) in within):
            number = context.ids.number(identity.key) or context.ids.assign(identity, item.created)
            raise GoneError(number, object_label(identity), clean(identity.key.agent_name))


def _prefer(found: Sequence[ObjectView], prefer: Callable[[ClassSchema], bool] | None) -> Sequence[ObjectView]:
    if len(found) < 2 or prefer is None:
        return found
    return [item for item in found if prefer(item.schema)] or found


def _ambiguous(context: Context, text: str, found: Sequence[ObjectView]) -> AmbiguousError:
    numbered = sorted(found, key=lambda item: natural_key(item.identity.index))
    labels = [full_label(item.identity) for item in numbered]
    candidates = []
    for item, label in zip(numbered, labels, strict=True):
        of = f" of {clean(item.identity.key.agent_name)}" if labels.count(label) > 1 else ""
        candidates.append(f"{context.ids.assign(item.identity, item.created)} {label}{of}")
    return AmbiguousError(clean(text), candidates)


def _find_named(objects: Sequence[ObjectView], text: str) -> list[ObjectView]:
    """The objects that `text` names; if there are none, those with this property `name`."""
    return [item for item in objects if text in names_of(item.identity)] or [
        item
        for item in objects
        if (name := item.values.get("name")) and text in (name, f"{item.identity.class_key.name}:{name}")
    ]


def _candidates(
    context: Context, keys: Sequence[ClassKey], names: Sequence[ClassName], text: str
) -> Sequence[ObjectView]:
    """Objects that `text` could name: requested by the values of their keys, so that not thousands are sent."""
    versions: dict[ClassName, list[ClassKey]] = {}
    for key in keys:
        versions.setdefault((key.package, key.name), []).append(key)
    indexes = {name: index for name in names if (index := _index_of(context, versions.get(name, ()))) is not None}
    texts = dict.fromkeys([text, *(text.removeprefix(f"{name}:") for _, name in indexes)])
    texts |= dict.fromkeys(text.removeprefix(f"{package}:{name}:") for package, name in indexes)
    found: list[ObjectView] = []
    for index in dict.fromkeys(indexes.values()):  # a condition may only name values that the classes have
        predicate = ["or", *(["eq", index, ["quote", key]] for key in texts)]
        found += context.objects([name for name in indexes if indexes[name] == index], predicate, everything=True)
    others = [name for name in names if name not in indexes]
    return [*found, *context.objects(others, everything=True)]


def _index_of(context: Context, versions: Sequence[ClassKey]) -> str | None:
    """The property that identifies objects of a class, if an agent can compare it with a text.

    That is the key, or `name` if the key has several parts; it must be the same in all versions.
    """
    found: set[str | None] = set()
    for key in versions:
        try:
            schema = context.backend.schema(key)
        except QmfError:
            return None  # then all objects of the class are requested
        index = [item for item in schema.properties if item.index] if isinstance(schema, ClassSchema) else []
        if len(index) > 1:
            index = [item for item in index if item.name == "name"]
        usable = len(index) == 1 and (index[0].type.is_string or index[0].type.is_integer)
        found.add(index[0].name if usable else None)
    return found.pop() if len(found) == 1 else None


def _likely_classes(keys: Iterable[ClassKey], text: str) -> list[ClassName]:
    """The classes whose name `text` begins with; all classes if there are none."""
    names = class_names(sorted(keys))
    named = [(package, name) for package, name in names if text.startswith((f"{name}:", f"{package}:{name}:"))]
    return named or names
