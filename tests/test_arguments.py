"""Options objects behind keyword arguments."""

from __future__ import annotations

import inspect

import attrs
import pytest

from qmf._arguments import arguments_of


@attrs.frozen(kw_only=True)
class Options:
    size: int
    colour: str = "red"


@attrs.frozen
class Arguments(Options):
    name: str


class Thing:
    @arguments_of(Arguments)
    def __init__(self, arguments: Arguments) -> None:
        """Make a thing."""
        self.options = arguments


def test_fields_are_arguments() -> None:
    assert Thing("a", size=1).options == Arguments("a", size=1, colour="red")
    assert Thing("a", size=1, colour="blue").options.colour == "blue"
    assert Thing(name="a", size=1).options.name == "a"


def test_the_signature_shows_them() -> None:
    assert list(inspect.signature(Thing).parameters) == ["name", "size", "colour"]
    assert inspect.signature(Thing).parameters["colour"].default == "red"
    assert Thing.__init__.__doc__ == "Make a thing."


def test_wrong_arguments_are_type_errors() -> None:
    with pytest.raises(TypeError, match="size"):
        Thing("a")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="weight"):
        Thing("a", size=1, weight=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        Thing("a", 1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="name"):
        Thing("a", size=1, name="b")  # type: ignore[misc]
