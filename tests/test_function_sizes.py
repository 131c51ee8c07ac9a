"""How long and how complex functions may be: what reads well in one piece, in the whole product."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.sources import blocks, parse

ROOT = Path(__file__).resolve().parents[1]

LONGEST = 60
MOST_COMPLEX = 15

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions(path: Path) -> Iterator[tuple[str, Function]]:
    """The functions of a module, with the names of the classes and functions around them."""

    def inside(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[str, Function]]:
        for child in blocks(node):
            inner = names
            if isinstance(child, ast.ClassDef | Function):
                inner = (*names, child.name)
            if isinstance(child, Function):
                yield ".".join(inner), child
            yield from inside(child, inner)

    yield from inside(parse(path), ())


def length(function: Function) -> int:
    """The lines from ``def`` to the end, with the docstring; functions inside are counted by themselves."""
    count = (function.end_lineno or function.lineno) - function.lineno + 1
    waiting = list(blocks(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function):
            first = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            count -= (node.end_lineno or node.lineno) - first + 1
        else:
            waiting += blocks(node)
    return count


def complexity(function: Function) -> int:
    """One, and one more for each branch, loop, ``except``, boolean operator, and part of a comprehension.

    A ``match`` is one branch, since its cases are read as a table; conditions of its cases count. Functions inside are
    counted by themselves.
    """
    count = 1
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, Function):
            continue
        waiting += ast.iter_child_nodes(node)
        match node:
            case ast.If() | ast.IfExp() | ast.For() | ast.AsyncFor() | ast.While() | ast.ExceptHandler() | ast.Match():
                count += 1
            case ast.BoolOp(values=values):
                count += len(values) - 1
            case ast.comprehension(ifs=conditions):
                count += 1 + len(conditions)
            case ast.match_case(guard=ast.expr()):
                count += 1
    return count


def measured(package: str) -> dict[str, tuple[int, int]]:
    """The functions of a package that are above a limit, with lines and complexity."""
    found: dict[str, tuple[int, int]] = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        if "models" in path.parts:
            continue  # generated
        for name, function in functions(path):
            size = length(function), complexity(function)
            if size[0] > LONGEST or size[1] > MOST_COMPLEX:
                found[name] = size
    return found


PACKAGES = sorted(
    str(path.parent.relative_to(ROOT))
    for root in ("qmf", "codegen", "shell")
    for path in (ROOT / root).glob("*/__init__.py")
)


@pytest.mark.parametrize("package", PACKAGES)
def test_functions_are_small(package: str) -> None:
    assert measured(package) == {}, "too long or too complex"


def test_complexity_is_counted() -> None:
    (function,) = ast.parse(
        "def f(x, y):\n"
        "    if x and y or y:\n"  # 1 + 2
        "        return [a for a in x if a]\n"  # 2
        "    match x:\n"  # 1
        "        case 1 if y: pass\n"  # 1
        "        case 2: pass\n"
        "    def inner(): return 1 if x else 2\n"
        "    while x: pass\n"  # 1
    ).body
    assert isinstance(function, ast.FunctionDef)
    assert (complexity(function), length(function)) == (9, 7)
