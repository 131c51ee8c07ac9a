"""Values: typed as the schema has them; inputs and outputs of methods."""

from __future__ import annotations

import struct
from functools import partial

import pytest
from console.aio.objects.remotes import AGENT, remote
from support.scripted_agent import WIDGET, part

from qmf.console.aio.objects.values import PreparedMethod, bind_inputs, convert_value, schema_name
from qmf.console.typed.values import typed_value
from qmf.errors import ConstraintError, NotFoundError
from qmf.protocol import ObjectId
from qmf.schema import TYPES, Argument, Direction, Method

ECHO = WIDGET.methods[0]


LINK = WIDGET.methods[1]


@pytest.mark.parametrize(
    ("args", "kwargs", "error", "words"),
    [
        ((1, "x", 3), {}, ConstraintError, r"widget.echo \(takes sequence, body\): must be given at most 2 arguments"),
        ((1,), {}, ConstraintError, r"argument 'body' of widget.echo \(lstr\): must be given, not None"),
        ((1, "x"), {"body": "y"}, ConstraintError, "given by position"),
        ((1, 2), {}, ConstraintError, r"argument 'body' of widget.echo \(lstr\): must be a string, not 2"),
        ((-1, "x"), {}, ConstraintError, "must be 0 to 4294967295"),
        ((True, "x"), {}, ConstraintError, "must be a whole number"),
        ((1,), {"bdoy": "x"}, NotFoundError, "did you mean body"),
    ],
)
def test_wrong_arguments_are_named(
    args: tuple[object, ...], kwargs: dict[str, object], error: type[Exception], words: str
) -> None:
    for bind in (partial(bind_inputs, "widget", ECHO), PreparedMethod(WIDGET, ECHO).bind):
        with pytest.raises(error, match=words):
            bind(args, kwargs)


LIMITED = Method(
    name="set",
    arguments=(
        Argument(name="small", type=TYPES["int8"], minimum=-5, maximum=1000),
        Argument(name="any", type=TYPES["uint64"]),
        Argument(name="short", type=TYPES["sstr"], max_len=3),
        Argument(name="long", type=TYPES["sstr"], default="d"),
        Argument(name="flag", type=TYPES["bool"]),
        Argument(name="rate", type=TYPES["float"], maximum=2),
        Argument(name="time", type=TYPES["absTime"]),
    ),
)


@pytest.mark.parametrize("position", range(len(LIMITED.inputs)))
@pytest.mark.parametrize(
    "value",
    [0, 5, -5, -6, 127, 128, 2**64 - 1, 2**64, 1.0, 2.5, True, None, "", "abc", "abcd", "é", "éé", "x" * 256, b"a", []],
)
def test_a_signature_binds_as_bind_does(position: int, value: object) -> None:
    method = Method(name="set", arguments=(LIMITED.arguments[position],))
    results: list[object] = []
    for bind in (
        partial(bind_inputs, "widget", method),
        PreparedMethod(WIDGET, method).bind,
    ):
        try:
            found = bind((value,), {})
            results.append((found, [type(item) for item in found.values()]))
        except ConstraintError as error:
            results.append(str(error))
    assert results[0] == results[1]


@pytest.mark.parametrize("target", [ObjectId("p"), remote(part("p", {}))])
def test_references_are_given_as_id_or_object(target: object) -> None:
    sent = bind_inputs("widget", LINK, (target,), {})
    assert isinstance(sent["target"], ObjectId)
    assert sent["force"] is False
    with pytest.raises(ConstraintError, match="must be a remote object or its id"):
        bind_inputs("widget", LINK, ("p",), {})


def test_a_method_without_inputs_accepts_none() -> None:
    with pytest.raises(ConstraintError, match="takes no arguments"):
        bind_inputs("widget", WIDGET.methods[2], (1,), {})


def test_outputs_are_typed_and_unknown_ones_kept() -> None:
    found = PreparedMethod(WIDGET, ECHO).typed_outputs({"sequence": 1.0, "body": b"x", "more": b"y"}, AGENT)
    assert found == {"sequence": 1, "body": "x", "more": b"y"}


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("sstr", b"x", "x"),
        ("uint8", 5, 5),
        ("double", 5, 5.0),
        ("uint8", "five", "five"),
        ("sstr", None, None),
        ("objId", {"_object_name": "p"}, ObjectId("p", AGENT)),
        ("objId", {"_object_name": "p", "_agent_name": "broker"}, ObjectId("p", AGENT)),
        ("objId", {"_object_name": "p", "_agent_name": "other"}, ObjectId("p", "other")),
        ("objId", {"_object_name": ""}, None),
    ],
)
def test_values_are_typed_and_what_does_not_fit_stays(kind: str, value: object, expected: object) -> None:
    result = convert_value(TYPES[kind], value, AGENT)
    assert result == expected
    assert type(result) is type(expected)


@pytest.mark.parametrize(("written", "name"), [("class_", "class"), ("from_", "from"), ("name_", "name_"), ("x", "x")])
def test_keywords_are_written_with_an_underscore(written: str, name: str) -> None:
    assert schema_name(written) == name


def test_a_number_of_32_bits_is_what_its_agent_wrote() -> None:
    (sent,) = struct.unpack("f", struct.pack("f", 15.3))
    assert repr(sent) == "15.300000190734863"
    assert convert_value(TYPES["float"], sent, AGENT) == 15.3
    assert typed_value(TYPES["float"], sent, "widget.load", AGENT, optional=False) == 15.3
    rate = Method(name="rate", arguments=(Argument(name="found", type=TYPES["float"], direction=Direction.OUT),))
    assert PreparedMethod(WIDGET, rate).typed_outputs({"found": sent}, AGENT) == {"found": 15.3}
    assert convert_value(TYPES["double"], sent, AGENT) == sent
