"""Docstrings composed from a schema."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from qmf.schema import (
    TYPES,
    Access,
    Argument,
    ClassSchema,
    Direction,
    EventSchema,
    Method,
    Property,
    Reference,
    Severity,
    Statistic,
)
from qmf.schema.documentation import FieldDocstring, document, field_text, sentence

DOOR = ClassSchema(
    package="p",
    name="Door",
    properties=(Property(name="label", type=TYPES["sstr"], desc="Text on the door"),),
    methods=(
        Method(
            name="import",
            arguments=(
                Argument(name="class", type=TYPES["uint8"], default=3, desc="Which ones"),
                Argument(name="count", type=TYPES["uint32"], direction=Direction.OUT, desc="How many"),
            ),
            desc="Bring things in",
        ),
        Method(name="close"),
    ),
    desc="A door",
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a word", "a word."),
        ("Stops here.", "Stops here."),
        ("  two \n lines ", "two lines."),
        ("really?", "really?"),
        ('say "no"', 'say "no".'),
        ("", ""),
        (" \t", ""),
    ],
)
def test_sentences(text: str, expected: str) -> None:
    assert sentence(text) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Property(name="p", type=TYPES["bool"]), "bool, RO."),
        (
            Property(
                name="p", type=TYPES["uint8"], access=Access.RW, unit="percent", minimum=1, maximum=100, index=True
            ),
            "uint8, percent, 1 to 100, RW, index.",
        ),
        (Property(name="p", type=TYPES["sstr"], max_len=9, optional=True), "sstr, at most 9 bytes, RO, optional."),
        (
            Property(name="p", type=TYPES["objId"], parent_ref=True, references=Reference("org.x", "Y"), desc="Up"),
            "objId, RO, parent, refers to org.x:Y. Up.",
        ),
        (Property(name="p", type=TYPES["objId"], general_reference=True), "objId, RO, refers to any class."),
        (Statistic(name="s", type=TYPES["count64"], assign="a -  b", minimum=2), "count64, at least 2, equals a - b."),
        (Argument(name="a", type=TYPES["double"], maximum=2.5, default=1.0), "double, at most 2.5, default 1.0."),
        (Argument(name="a", type=TYPES["map"], default={"a": 1}), "map, default {'a': 1}."),
    ],
)
def test_fields(item: Property | Statistic | Argument, expected: str) -> None:
    assert field_text(item) == expected


class Base:
    def __init_subclass__(cls) -> None:
        document(cls, "seconds to wait")


class Door(Base):
    _qmf_schema_ = DOOR

    def import_(self, class_: int = 3, *, timeout: float = 1) -> None: ...

    def close(self) -> None: ...


class Barn(Door):
    def close(self) -> None:
        """Close both wings."""


def test_classes_and_methods() -> None:
    assert Door.__doc__ == "A door."
    assert inspect.getdoc(Door.import_) == (
        "Bring things in.\n\n"
        "Args:\n    class_: uint8, default 3. Which ones.\n    timeout: seconds to wait.\n\n"
        "Returns:\n    count: uint32. How many."
    )
    assert Door.close.__doc__ == "Method close."


def test_a_docstring_of_an_author_stays() -> None:
    class Named(Base):
        """My own."""

        _qmf_schema_ = DOOR

    assert Named.__doc__ == "My own."
    assert Barn.close.__doc__ == "Close both wings."
    assert Barn.__doc__ is None
    assert inspect.getdoc(Barn) == "A door."


def test_events_list_their_arguments() -> None:
    arguments = (Argument(name="class", type=TYPES["bool"], desc="Old"), Argument(name="x", type=TYPES["uint8"]))

    class Alarm(Base):
        _qmf_schema_ = EventSchema(package="p", name="alarm", severity=Severity.ALERT, arguments=arguments)
        class_ = x = None

    assert Alarm.__doc__ == (
        "Event alarm of package p.\n\nSeverity: alert.\n\nAttributes:\n    class_: bool. Old.\n    x: uint8."
    )


def test_descriptors() -> None:
    class Descriptor:
        item: Any = None

    Descriptor.__doc__ = FieldDocstring("What it is.")  # type: ignore[assignment]
    assert Descriptor.__doc__ == Descriptor().__doc__ == "What it is."
    descriptor = Descriptor()
    descriptor.item = DOOR.properties[0]
    descriptor.__doc__ = "ignored"
    assert descriptor.__doc__ == "sstr, RO. Text on the door."
