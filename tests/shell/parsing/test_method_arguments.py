"""Arguments of methods that are not given."""

from __future__ import annotations

import pytest
from qmf_shell.parsing.method_arguments import missing_arguments, parse_arguments, signature

from qmf.schema import TYPES, Argument, Method
from qmf.views.arguments import ArgumentError
from qmf.views.conditions.words import split_line

PURGE = Method(
    name="purge",
    arguments=(
        Argument(name="request", type=TYPES["uint32"]),
        Argument(name="filter", type=TYPES["map"]),
        Argument(name="more", type=TYPES["map"]),
    ),
)


def parsed(method: Method, line: str) -> dict[str, object]:
    return parse_arguments(method, split_line(line), lambda text, item: text)


def test_maps_at_the_end_are_empty_if_they_are_not_given() -> None:
    assert parsed(PURGE, "5") == {"request": 5, "filter": {}, "more": {}}
    assert parsed(PURGE, '5 {"a":1}') == {"request": 5, "filter": {"a": 1}, "more": {}}
    assert parsed(PURGE, 'request=5 more={"a":1} filter={}') == {"request": 5, "filter": {}, "more": {"a": 1}}
    assert signature(PURGE) == "purge request:uint32 [filter:map] [more:map]"


def test_others_must_be_given() -> None:
    assert [item.name for item in missing_arguments(PURGE, ())] == ["request"]
    with pytest.raises(ArgumentError, match=r"request \(uint32\) is missing"):
        parsed(PURGE, "filter={}")
    with pytest.raises(ArgumentError, match=r"filter \(map\) is missing"):
        parsed(PURGE, "5 more={}")


@pytest.mark.parametrize("kinds", [("map", "bool"), ("map",), ("map", "map")])
def test_a_map_that_is_the_point_of_a_method_must_be_given(kinds: tuple[str, ...]) -> None:
    arguments = tuple(Argument(name=f"a{number}", type=TYPES[kind]) for number, kind in enumerate(kinds))
    with pytest.raises(ArgumentError, match="missing"):
        parsed(Method(name="configure", arguments=arguments), "")
