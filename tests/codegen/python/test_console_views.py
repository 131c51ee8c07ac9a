"""Names and signatures of console modules where a schema wants the names that proxies have of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
from qmf_codegen.python.console_views import console_view
from qmf_codegen.python.naming import free_name, names_of
from qmf_codegen.python.views import ClassView, MethodView, ModuleView
from support.generated import complaints, make

from qmf.schema import (
    TYPES,
    Access,
    Argument,
    ClassSchema,
    Direction,
    EventSchema,
    Method,
    Property,
    Schema,
    Severity,
)


def view(schema: Schema) -> ModuleView:
    return console_view(schema, names_of(schema))


def one(*, methods: tuple[Method, ...] = (), properties: tuple[Property, ...] = ()) -> ClassView:
    (found,) = view(
        Schema(package="p", classes=(ClassSchema(package="p", name="C", methods=methods, properties=properties),))
    ).classes
    return found


def signature(item: MethodView) -> str:
    return f"{item.keyword} {item.name}({', '.join(item.parameters)}) -> {item.result}"


def method(*arguments: Argument, name: str = "m") -> Method:
    return Method(name=name, arguments=arguments)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], "self, *, timeout: float | None = None"),
        ([("a", "uint8", None)], "self, a: int, *, timeout: float | None = None"),
        ([("timeout", "uint8", None)], "self, timeout: int, *, timeout_: float | None = None"),
        ([("self", "uint8", 1)], "self, self_: int = 1, *, timeout: float | None = None"),
        (
            [("a", "uint8", 1), ("b", "uint8", None), ("c", "sstr", "x")],
            "self, a: int, b: int, c: str = 'x', *, timeout: float | None = None",
        ),
        (
            [("a", "lstr", "x" * 60), ("b", "bool", True)],
            "self, a: str | None = None, b: bool = True, *, timeout: float | None = None",
        ),
    ],
)
def test_signatures(arguments: list[tuple[str, str, object]], expected: str) -> None:
    made = [Argument(name=name, type=TYPES[type_name], default=default) for name, type_name, default in arguments]
    (found,) = one(methods=(method(*made),)).methods
    assert signature(found) == f"async def m({expected}) -> None"


def test_a_method_names_its_result() -> None:
    output = Argument(name="x", type=TYPES["bool"], direction=Direction.IN_OUT)
    (found,) = one(methods=(method(output, name="import"),)).methods
    assert signature(found).startswith("async def import_(self, x: bool, *, timeout")
    assert found.body == 'return await self._qmf_call("import", timeout, CImportResult, x)'


@pytest.mark.parametrize(
    ("properties", "methods", "name"),
    [(["a"], [], "set"), (["set"], [], "set_"), (["a"], ["set"], "set_"), (["set_"], ["set"], "set")],
)
def test_the_setter_gives_way(properties: list[str], methods: list[str], name: str) -> None:
    items = tuple(Property(name=item, type=TYPES["uint8"], access=Access.RW) for item in properties)
    found = one(properties=items, methods=tuple(method(name=item) for item in methods))
    setter = next(item for item in found.methods if "_qmf_set" in item.body)
    assert signature(setter).startswith(f"async def {name}(self, *, ")


def test_a_property_called_timeout_comes_first() -> None:
    item = Property(name="timeout", type=TYPES["uint8"], access=Access.RW)
    (setter,) = one(properties=(item,)).methods
    assert (
        signature(setter)
        == "async def set(self, *, timeout: int | Unset = UNSET, timeout_: float | None = None) -> None"
    )
    assert setter.body == 'await self._qmf_set(timeout_, {"timeout": timeout})'


def test_a_class_without_read_write_properties_has_no_setter() -> None:
    assert one(properties=(Property(name="a", type=TYPES["uint8"], access=Access.RC),)).methods == []


def test_arguments_of_events_give_way_to_what_all_events_have() -> None:
    names = ["agent", "agent_", "severity", "timestamp", "object_id", "level"]
    event = EventSchema(
        package="p",
        name="e",
        severity=Severity.WARN,
        arguments=tuple(Argument(name=name, type=TYPES["bool"]) for name in names),
    )
    (found,) = view(Schema(package="p", events=(event,))).events
    assert [field.name for field in found.fields] == [
        "agent_",
        "agent__",
        "severity_",
        "timestamp_",
        "object_id_",
        "level",
    ]


def test_free_names() -> None:
    assert [free_name("x", taken) for taken in ([], ["x"], ["x", "x_"])] == ["x", "x_", "x__"]


@pytest.mark.slow
def test_the_names_of_the_runtime_base_are_free_for_schemas(tmp_path: Path) -> None:
    """Whatever the base has besides what begins with an underscore could not be a schema's."""
    from qmf.console.typed import TypedObject

    assert [name for name in dir(TypedObject) if not name.startswith("_")] == []
    names = ["update", "set", "schema", "call", "agent", "data", "timeout", "wrap", "Attribute", "UNSET", "Unset"]
    properties = tuple(Property(name=name, type=TYPES["uint8"], access=Access.RW) for name in names)
    methods = tuple(method(*(Argument(name=n, type=TYPES["bool"]) for n in names), name=f"{name}It") for name in names)
    item = ClassSchema(package="p", name="TypedObject", properties=properties, methods=methods)
    make(Schema(package="p", classes=(item,)), tmp_path, "made")
    assert complaints(tmp_path) == ""
