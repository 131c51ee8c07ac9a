"""Candidates for classes and objects.

10,000 objects must not cause a delay: an object is compared by its search text (`session.object_names`), which takes
one substring search, and becomes a candidate only if it matches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import attrs

from qmf.schema import Kind
from qmf.views.objects import ObjectIdentity
from qmf_shell.completion.data import CompletionData
from qmf_shell.session.name_cache import NameSnapshot
from qmf_shell.session.object_names import MARK, names_class

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
