"""The names of objects, classes and brokers: how they are written, and how typed text is compared with them."""

from __future__ import annotations

from collections.abc import Iterable

from qmf.schema import ClassKey
from qmf.views.objects import ObjectIdentity
from qmf_shell.session.backend import ClassName

#: The package of brokers' classes.
BROKER_PACKAGE = "org.apache.qpid.broker"
#: Precedes each name in a search text; typed text never contains it.
MARK = "\n"


def names_of(identity: ObjectIdentity) -> tuple[str, ...]:
    """Every way to write an object, except its short id."""
    key, index = identity.class_key, identity.index
    return index, f"{key.name}:{index}", f"{key.package}:{key.name}:{index}", identity.key.object_name


def without_user(url: str) -> str:
    """A URL without user and password, to be shown."""
    scheme, slashes, rest = url.rpartition("//")
    return scheme + slashes + rest.rpartition("@")[2]


def class_name(identity: ObjectIdentity) -> ClassName:
    """Package and name of an object's class."""
    return identity.class_key.package, identity.class_key.name


def class_names(keys: Iterable[ClassKey]) -> list[ClassName]:
    """Package and name of each class, without versions, in the order of `keys`."""
    return list(dict.fromkeys((key.package, key.name) for key in keys))


def names_class(text: str, key: ClassKey) -> bool:
    """True if `text` names this class: ``name``, ``package:name`` or ``package.name``, in any case of letters.

    ``qpid.name`` is a class of a broker, whose package had this name in the releases that the old manual describes.
    """
    text, class_name, package = text.lower(), key.name.lower(), key.package.lower()
    dotted = [f"{package}.{class_name}", *([f"qpid.{class_name}"] if package == BROKER_PACKAGE else [])]
    return text in (class_name, f"{package}:{class_name}", f":{class_name}", *dotted)


def search_text(identity: ObjectIdentity, *more: str) -> str:
    """All names of an object in one text: it contains ``MARK + typed`` if one of them begins with the typed text.

    Completion compares the typed text with up to 10,000 objects; this way each takes one substring search.
    """
    key = identity.class_key
    names = (*more, identity.index, f"{key.name}:{identity.index}", identity.title)
    return MARK + MARK.join(name for name in names if name).lower()
