"""Options objects behind keyword arguments."""

from __future__ import annotations

import inspect

import attrs
import pytest

from qmf._keywords import keywords_of


@attrs.frozen(kw_only=True)
class Options:
    size: int
    colour: str = "red"


class Thing:
    @keywords_of(Options)
    def __init__(self, name: str, options: Options) -> None:
        """Make a thing."""
        self.name = name
        self.options = options


def test_fields_are_keyword_arguments() -> None:
    thing = Thing("a", size=1)
    assert (thing.name, thing.options) == ("a", Options(size=1, colour="red"))
    assert Thing("a", size=1, colour="blue").options.colour == "blue"
    assert Thing(name="a", size=1).name == "a"  # type: ignore[call-arg]


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
        Thing("a", Options(size=1))  # type: ignore[call-arg,arg-type]
