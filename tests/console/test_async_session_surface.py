"""The public surface: names, docstrings, and a facade that follows its core."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

from qmf import console
from qmf.console import Session, aio
from qmf.console.async_session import AsyncSession
from qmf.console.broker_options import read_options

#: Methods of the facade that are made of another core method.
COMPOSED = {"bindClassKey": "bind_class", "bindEventKey": "bind_event", "addAgentFilter": "add_heartbeat_filter"}


def snake(name: str) -> str:
    return re.sub(r"(?<!^)([A-Z])", lambda found: f"_{found[1].lower()}", name)


FACADE = [name for name, item in vars(Session).items() if inspect.isfunction(item) and not name.startswith("_")]


@pytest.mark.parametrize("name", FACADE)
def test_each_method_of_the_facade_has_the_signature_of_its_core(name: str) -> None:
    core = getattr(AsyncSession, COMPOSED.get(name, snake(name)))
    assert inspect.iscoroutinefunction(core)
    if name == "addBroker":  # its arguments are read before the session gets them
        arguments = list(inspect.signature(read_options).parameters)
        assert ["self", *arguments] == list(inspect.signature(Session.addBroker).parameters)
    elif name not in {"bindClassKey", "bindEventKey"}:
        assert inspect.signature(getattr(Session, name)).parameters == inspect.signature(core).parameters


def test_the_constructor_takes_the_documented_arguments() -> None:
    documented = ["console", "rcvObjects", "rcvEvents", "rcvHeartbeats", "manageConnections", "userBindings"]
    assert list(inspect.signature(Session).parameters) == documented


def test_each_method_of_the_facade_is_one_line() -> None:
    tree = ast.parse(Path(inspect.getfile(Session)).read_text(encoding="utf-8"))
    (body,) = [node.body for node in tree.body if isinstance(node, ast.ClassDef)]
    long = [
        item.name
        for item in body
        if isinstance(item, ast.FunctionDef)
        and item.name != "close"
        and len(
            [line for line in item.body if not (isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant))]
        )
        > 1
    ]
    assert long == []


@pytest.mark.parametrize("package", [console, aio])
def test_public_names_exist_once_and_are_documented(package: object) -> None:
    names = package.__all__  # type: ignore[attr-defined]
    assert names == sorted(set(names))
    for name in names:
        item = getattr(package, name)
        if inspect.isclass(item) or inspect.isfunction(item):
            assert item.__doc__, name
            for member, value in vars(item).items():
                if inspect.isfunction(value) and not member.startswith("_") and name != "DebugConsole":
                    assert value.__doc__, f"{name}.{member}"


@pytest.mark.parametrize(
    "name",
    [
        "Session",
        "Console",
        "DebugConsole",
        "Broker",
        "BrokerURL",
        "Agent",
        "Object",
        "ObjectId",
        "ClassKey",
        "SchemaClass",
        "SchemaProperty",
        "SchemaStatistic",
        "SchemaMethod",
        "SchemaArgument",
        "MethodResult",
        "Event",
    ],
)
def test_documented_names_are_there(name: str) -> None:
    assert name in console.__all__


def test_documented_callbacks_are_there() -> None:
    assert {name for name in vars(console.Console) if not name.startswith("_")} == {
        "brokerConnected",
        "brokerConnectionFailed",
        "brokerDisconnected",
        "newPackage",
        "newClass",
        "newAgent",
        "delAgent",
        "objectProps",
        "objectStats",
        "event",
        "heartbeat",
        "brokerInfo",
        "methodResponse",
    }
