"""The public surface: names, docstrings, and methods that block."""

from __future__ import annotations

import inspect

import pytest

from qmf import console
from qmf.console import Session, aio
from qmf.console.broker_options import read_options

FACADE = [name for name, item in vars(Session).items() if inspect.isfunction(item) and not name.startswith("_")]


@pytest.mark.parametrize("name", FACADE)
def test_each_method_blocks_and_has_the_arguments_that_it_names(name: str) -> None:
    method = getattr(Session, name)
    assert not inspect.iscoroutinefunction(method)
    assert next(iter(inspect.signature(method).parameters)) == "self"
    if name == "addBroker":  # its arguments are read before the session gets them
        arguments = list(inspect.signature(read_options).parameters)
        assert ["self", *arguments] == list(inspect.signature(method).parameters)


def test_the_constructor_takes_the_documented_arguments() -> None:
    documented = ["console", "rcvObjects", "rcvEvents", "rcvHeartbeats", "manageConnections", "userBindings"]
    assert list(inspect.signature(Session).parameters) == documented


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
