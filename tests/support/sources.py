"""Source text of this project as trees, for tests about it.

Trees are looked at one after the other and not kept: those of all modules are a million objects, among which each
collection of garbage would look again for the rest of the run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

#: What statements stand in.
_BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)


def parse(path: Path) -> ast.Module:
    """The tree of a module."""
    return ast.parse(path.read_text(encoding="utf-8"))


def blocks(node: ast.AST) -> Iterator[ast.AST]:
    """The statements directly in a node, and its handlers and cases: all children that are no expressions."""
    return (child for child in ast.iter_child_nodes(node) if isinstance(child, _BLOCKS))


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """The statements in a node, also those in other statements; expressions, which have none, are left out."""
    waiting = [node]
    while waiting:
        for child in blocks(waiting.pop()):
            waiting.append(child)
            yield child
