"""How objects are called: by what distinguishes one from the others of its class."""

from __future__ import annotations

import re
from collections.abc import Mapping

from qmf.protocol import ObjectId
from qmf.schema import ClassSchema
from qmf.views.text import clean

#: Stands for an empty name.
NO_NAME = "(no name)"


def index_text(name: str, schema: ClassSchema, values: Mapping[str, object]) -> str:
    """The index of an object: its name without package and class, or its key properties if the name is arbitrary.

    Names of other objects in it, such as the exchange and queue of a binding, lose their package and class, too. It is
    empty if the key is empty, as that of qpidd's default exchange.

    Args:
        name: the object's name within its agent.
        values: its values by wire name; the text of a reference is the name of the object that it refers to.
    """
    package, _, rest = name.partition(":")
    class_name, colon, key = rest.partition(":")
    if colon and package == schema.package and class_name.lower() == schema.name.lower():
        if ":" not in key:
            return key
        return without_class(key, schema.package) or key
    parts = [values.get(item.name) for item in schema.properties if item.index]
    texts = [str(part) for part in parts if part is not None]
    return ",".join(texts) or name


def index_and_title(name: str, schema: ClassSchema, values: Mapping[str, object]) -> tuple[str, str]:
    """The index of an object, and its title where that says more; see `index_text` and `title_text`."""
    index, title = index_text(name, schema, values), title_text(schema, values)
    # Some schemas do not tell which properties make the index.
    return index, "" if title and title in (index, *index.split(",")) else title


def without_class(name: str, package: str) -> str:
    """The name of an object without package and classes, also those of the names inside it."""
    return re.sub(rf"(?:^|(?<=,))(?:{re.escape(package)}:\w+:)+", "", name)


def class_and_key(name: str) -> tuple[str, str] | None:
    """The class and the key in the name of an object, ``package:class:key``; None if it is not built so.

    The key has no package and classes, as of `without_class`; an empty key, as that of the default exchange, is
    ``(no name)``.
    """
    package, _, rest = name.partition(":")
    class_name, colon, key = rest.partition(":")
    if not (package and class_name and colon) or " " in package:
        return None
    return class_name, without_class(key, package) or key or NO_NAME


def reference_text(reference: ObjectId | str) -> str:
    """The object that a reference names, as briefly as its name allows: ``queue orders``."""
    name = clean(str(reference))
    return " ".join(class_and_key(name) or (name,))


def title_text(schema: ClassSchema, values: Mapping[str, object]) -> str:
    """The property `name` of an object, unless it is part of its key."""
    item = schema.property("name")
    value = None if item is None or item.index else values.get("name")
    return value if isinstance(value, str) else ""
