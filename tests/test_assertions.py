"""Each test asserts something, by itself or by a function that it calls, and names the errors that it expects."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import attrs
import pytest
from support.sources import parse

pytestmark = pytest.mark.slow

TESTS = Path(__file__).resolve().parent

Function = ast.FunctionDef | ast.AsyncFunctionDef

#: What fails a test besides ``assert``: contexts of pytest, waiting for a condition up to a limit, limits of time.
_ASSERTING = {"raises", "warns", "fail", "until", "wait_until", "timeout"}


@attrs.frozen
class Calls:
    """What a function of the tests does that can fail a test.

    Attributes:
        asserts: it has an assertion of its own.
        names: what it calls by name, of its module or imported.
        methods: what it calls as a member of something.
    """

    asserts: bool
    names: frozenset[str]
    methods: frozenset[str]


@attrs.frozen
class Module:
    """A module of the tests.

    Attributes:
        functions: by name, also methods and functions inside others.
        imported: for each imported name, the module and the name there.
        broad: lines that expect any exception at all.
    """

    functions: dict[str, list[Calls]]
    imported: dict[str, tuple[str, str]]
    broad: list[int]


def calls(function: Function) -> Calls:
    """What a function does, functions inside it included."""
    nodes = list(ast.walk(function))
    found = [node.func for node in nodes if isinstance(node, ast.Call)]
    return Calls(
        any(isinstance(node, ast.Assert) or raises_assertion_error(node) for node in nodes),
        frozenset(of.id for of in found if isinstance(of, ast.Name)),
        frozenset(of.attr for of in found if isinstance(of, ast.Attribute)),
    )


def raises_assertion_error(node: ast.AST) -> bool:
    """True for ``raise AssertionError(...)``."""
    return (
        isinstance(node, ast.Raise)
        and isinstance(node.exc, ast.Call)
        and isinstance(node.exc.func, ast.Name)
        and node.exc.func.id == "AssertionError"
    )


def is_broad(node: ast.Call) -> bool:
    """True for ``raises(Exception)`` and the like."""
    return (
        isinstance(node.func, ast.Attribute)
        and node.func.attr == "raises"
        and bool(node.args)
        and isinstance(node.args[0], ast.Name)
        and node.args[0].id in {"Exception", "BaseException"}
    )


def read(path: Path) -> Module:
    """What is in a module."""
    functions: dict[str, list[Calls]] = {}
    imported: dict[str, tuple[str, str]] = {}
    broad = []
    for node in ast.walk(parse(path)):
        if isinstance(node, Function):
            functions.setdefault(node.name, []).append(calls(node))
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported |= {alias.asname or alias.name: (node.module, alias.name) for alias in node.names}
        elif isinstance(node, ast.Call) and is_broad(node):
            broad.append(node.lineno)
    return Module(functions, imported, broad)


@cache
def modules() -> dict[str, Module]:
    """The modules of the tests by their names."""
    return {".".join(path.relative_to(TESTS).with_suffix("").parts): read(path) for path in sorted(TESTS.rglob("*.py"))}


@cache
def asserting() -> set[tuple[str, str]]:
    """The functions that assert, also through others, by module and name: of those with one name, each has to."""
    found: set[tuple[str, str]] = set()
    everywhere: dict[str, list[tuple[str, str]]] = {}
    for module, of in modules().items():
        for name in of.functions:
            everywhere.setdefault(name, []).append((module, name))

    def asserts(module: str, does: Calls) -> bool:
        if does.asserts or (does.names | does.methods) & _ASSERTING:
            return True
        imported = modules()[module].imported
        if any((module, name) in found or imported.get(name) in found for name in does.names | does.methods):
            return True
        # Members of what is imported.
        sources = {imported[name][0] for name in does.names if name in imported}
        if any((source, name) in found for source in sources for name in does.methods):
            return True
        return any(all(one in found for one in everywhere[name]) for name in does.methods if name in everywhere)

    while True:
        more = {
            (module, name)
            for module, of in modules().items()
            for name, same in of.functions.items()
            if (module, name) not in found and all(asserts(module, does) for does in same)
        }
        if not more:
            return found
        found |= more


def test_each_test_asserts_something() -> None:
    without = [
        f"{module}: {name}"
        for module, of in modules().items()
        if module.rpartition(".")[2].startswith("test_")
        for name in of.functions
        if name.startswith("test_") and (module, name) not in asserting()
    ]
    assert without == []


def test_no_test_expects_just_any_exception() -> None:
    assert [f"{module}:{line}" for module, of in modules().items() for line in of.broad] == []
