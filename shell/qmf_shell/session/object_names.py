"""The ways to write an object, and to find it by what was typed of one of them; what a broker is called."""

from __future__ import annotations

from qmf_shell.session.backend import ClassName, ObjectIdentity

#: Stands in front of each name in a search text; no typed text holds it.
MARK = "\n"


def names_of(identity: ObjectIdentity) -> tuple[str, ...]:
    """Every way to write an object but its short id."""
    key = identity.class_key
    return (
        identity.index,
        f"{key.name}:{identity.index}",
        f"{key.package}:{key.name}:{identity.index}",
        identity.key.name,
    )


def without_user(url: str) -> str:
    """A URL without user and password, to be shown."""
    scheme, slashes, rest = url.rpartition("//")
    return scheme + slashes + rest.rpartition("@")[2]


def class_name(identity: ObjectIdentity) -> ClassName:
    """Package and name of an object's class."""
    return identity.class_key.package, identity.class_key.name


def search_text(identity: ObjectIdentity, *more: str) -> str:
    """All of an object's names in one text: one look for ``MARK + typed`` finds what begins so, whatever the name.

    Completion compares what was typed with 10,000 objects; so each of them takes one look.
    """
    key = identity.class_key
    names = (*more, identity.index, f"{key.name}:{identity.index}", identity.title)
    return MARK + MARK.join(name for name in names if name).lower()
