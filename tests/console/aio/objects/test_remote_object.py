"""Remote objects and results of methods, without an agent."""

from __future__ import annotations

import pytest
from console.aio.objects.remotes import remote
from support.scripted_agent import part, widget

from qmf.console.aio import (
    CallResult,
)
from qmf.errors import CallerError, NotFoundError


def test_an_object_is_read_by_its_schema() -> None:
    obj = remote(widget("w"))
    assert list(obj.properties) == ["name", "level", "enabled"]
    assert len(obj.statistics) == 8
    assert obj.label is None
    assert (obj.delayAverage, obj["delayAvg"]) == (20, 20)
    assert list(obj.methods) == ["echo", "link", "stop"]
    assert {"name", "delayAvg", "echo", "update"} <= set(dir(obj))
    assert repr(obj) == "<org.example.widgets:widget w at example.org:widgets:1>"
    assert obj == remote(part("w", {}))
    assert len({obj, remote(part("w", {}))}) == 1


@pytest.mark.parametrize("name", ["nmae", "eccho"])
def test_unknown_attributes_name_similar_ones(name: str) -> None:
    with pytest.raises(AttributeError, match=r"did you mean (name|echo)"):
        getattr(remote(widget("w")), name)
    with pytest.raises(NotFoundError):
        remote(widget("w"))[name]


def test_values_beyond_the_schema_can_be_read() -> None:
    obj = remote(widget("w", extra=1))
    assert obj.extra == 1
    untyped = remote(part("w", {"a": b"b"}), None)
    assert untyped.a == b"b"
    assert (dict(untyped.properties), dict(untyped.statistics)) == ({"a": b"b"}, {})
    with pytest.raises(NotFoundError):
        untyped["b"]


async def test_an_object_without_client_can_not_be_asked() -> None:
    obj = remote(widget("w"))
    for work in (obj.update(), obj.call("stop"), obj.set(level=2)):
        with pytest.raises(CallerError, match="not managed"):
            await work


def test_the_result_of_a_method_reads_by_item_and_attribute() -> None:
    result = CallResult({"body": "x", "keys": 1})
    assert (result.body, result["keys"], len(result), list(result)) == ("x", 1, 2, ["body", "keys"])
    with pytest.raises(AttributeError, match="did you mean body"):
        _ = result.bodi
    assert repr(result) == "CallResult({'body': 'x', 'keys': 1})"
