"""The glossary and the code agree: every name of the page is defined, and a word means one thing."""

from __future__ import annotations

import ast
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import attrs
import pytest
from support.sources import parse

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")

#: The first two columns of the tables: concepts, and names in the code.
ROWS = [
    (concepts.strip(), names)
    for concepts, names in re.findall(r"^\|([^|]*)\|([^|]*)\|", PAGE, re.MULTILINE)
    if concepts.strip() not in ("concept", "class", "---")
]

#: The names in the code, with the packages in front of some.
NAMES = sorted({name for _, names in ROWS for name in re.findall(r"`([A-Za-z_.]+)`", names)} - {"XState", "on_x"})
NAMES = [name for name in NAMES if not name.startswith("...")]


@attrs.frozen
class Module:
    """What a module defines.

    Attributes:
        names: of classes, functions, parameters, variables and attributes.
        classes: public ones.
    """

    names: frozenset[str]
    classes: tuple[str, ...]


@cache
def modules() -> Mapping[str, Module]:
    """The product's modules by their names; what is generated defines the names of its schemas."""
    found = {}
    for root in ("qmf", "shell/qmf_shell", "codegen/qmf_codegen"):
        for path in (ROOT / root).rglob("*.py"):
            parts = path.relative_to(ROOT if root == "qmf" else (ROOT / root).parent).with_suffix("").parts
            if parts[:2] != ("qmf", "models"):
                name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
                tree = parse(path)
                classes = (node.name for node in tree.body if isinstance(node, ast.ClassDef))
                public = tuple(name for name in classes if not name.startswith("_"))
                found[name] = Module(frozenset(defined_in(tree)), public)
    return found


def defined_in(tree: ast.Module) -> Iterator[str]:
    """The names that a module defines: of classes, functions, parameters, variables and attributes."""
    for node in ast.walk(tree):
        if isinstance(node, (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr


@cache
def defined() -> frozenset[str]:
    names = {part for module in modules() for part in module.split(".")}
    return frozenset(names.union(*(module.names for module in modules().values())))


def homes() -> Mapping[str, list[str]]:
    """The modules that define each public class."""
    found = defaultdict(list)
    for name, module in modules().items():
        for of in module.classes:
            found[of].append(name)
    return found


def names_home(qualified: str, name: str, module: str) -> bool:
    """True where a name such as ``bus.Binding`` means the class of this module, by the packages in front of it."""
    *packages, last = qualified.split(".")
    parts = iter(module.split("."))
    return last == name and bool(packages) and all(package in parts for package in packages)


@pytest.mark.parametrize("name", NAMES)
def test_a_name_of_the_glossary_is_defined(name: str) -> None:
    assert set(name.split(".")) <= defined()


def test_a_concept_stands_in_one_row() -> None:
    """One that has several meanings is qualified in parentheses, wherever it stands."""
    words = [word.strip() for concepts, _ in ROWS for word in re.sub(r",(?=[^(]*\))", "", concepts).split(",")]
    plain = Counter(re.sub(r" \(.*", "", word) for word in words)
    wrong = {word for word in words if "(" not in word and plain[word] > 1}
    assert sorted(wrong | {word for word, count in Counter(words).items() if count > 1}) == []


def test_a_class_has_a_name_of_its_own() -> None:
    """Or the glossary tells its homes apart, each by the packages in front of the name."""
    wrong = [
        f"{name}: {module}"
        for name, defining in homes().items()
        if len(defining) > 1
        for module in defining
        if not any(names_home(qualified, name, module) for qualified in NAMES)
    ]
    assert wrong == []


def test_the_page_has_names() -> None:
    assert len(NAMES) > 100
