"""Functions are named by what they do, return or ask, never by a participle alone; docstrings begin with a sentence."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

Function = ast.FunctionDef | ast.AsyncFunctionDef

#: Participles that do not end in -ed. Those that are infinitives as well (read, run, put, set) are verbs here.
IRREGULAR = frozenset(
    re.findall(
        r"\w+",
        """
        begun bent bitten blown born borne bought bound broken brought built burnt caught chosen dealt done drawn
        driven eaten fallen fed felt fled flown forbidden forgiven forgotten fought found frozen given gone got
        gotten grown heard held hidden hung kept known laid lain led left lent lit lost made meant met mistaken
        overdrawn overridden overwritten paid proven rebuilt redone remade resent rewritten ridden risen said seen
        sent shaken shown slept sold sought spent spoken spun stolen stood struck stuck sung sunk sworn taken taught
        thought thrown told torn unbound understood undone unheard unknown unmade unmet unread unseen unsent unsold
        untold unwritten withdrawn withheld woken won worn wound woven written
        """,
    )
)
#: Words that end in -ed, and are verbs or nouns.
NO_PARTICIPLES = frozenset(
    {"bleed", "breed", "embed", "exceed", "feed", "hundred", "need", "proceed", "seed", "shed", "speed", "succeed"}
)
#: What may be named by a participle, and why.
PERMITTED = {
    "qmf/messaging/bases.py ConnectionBase.opened": "a published name",
    "qmf/messaging/bases.py ConnectionBase.attached": "a published name",
    "qmf/messaging/bases.py SenderBase.unsettled": "a published name",
    "qmf/messaging/bases.py ReceiverBase.unsettled": "a published name",
    "qmf/messaging/core/outgoing.py Answer.done": "a protocol of futures, whose name it is",
    "qmf/messaging/blocking.py BlockingAnswer.done": "a future",
}
#: How a section of a docstring begins.
SECTIONS = ("Args:", "Attributes:", "Raises:", "Returns:", "Yields:")
#: What a module with a name or docstring to be looked at contains: parsing all of them takes seconds.
_NAME = re.compile(
    rf"(?<!@property\n    )def _*(?!(?:{'|'.join(sorted(NO_PARTICIPLES))})\b)"
    rf"(?:[a-z]+ed|{'|'.join(sorted(IRREGULAR))})_*\("
)
_DOCSTRING = re.compile(rf'"""\s*(?:{"|".join(SECTIONS)})')


def is_participle(name: str) -> bool:
    """True for the name of a function such as ``found`` or ``_retried``, without a noun, a verb or a preposition."""
    word = name.strip("_")
    if "_" in word or word in NO_PARTICIPLES:
        return False
    return word in IRREGULAR or (word.isalpha() and word.islower() and word.endswith("ed"))


def is_property(function: Function) -> bool:
    """Properties are read as attributes, and may be states such as `closed`."""
    decorators = [ast.unparse(item) for item in function.decorator_list]
    return any("property" in item or item.endswith((".setter", ".getter", ".deleter")) for item in decorators)


def product(pattern: re.Pattern[str]) -> Iterator[tuple[str, ast.Module]]:
    """The modules of the product that contain something, without those that are generated."""
    for root in ("qmf", "codegen", "shell"):
        for path in sorted((ROOT / root).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith("qmf/models/") and pattern.search(text := path.read_text(encoding="utf-8")):
                yield name, ast.parse(text)


def definitions(tree: ast.Module) -> Iterator[tuple[str, Function | ast.ClassDef]]:
    """The functions and classes of a module, with the names of the classes and functions around them."""

    def inside(node: ast.AST, names: tuple[str, ...]) -> Iterator[tuple[str, Function | ast.ClassDef]]:
        for child in ast.iter_child_nodes(node):
            inner = names
            if isinstance(child, ast.ClassDef | Function):
                inner = (*names, child.name)
                yield ".".join(inner), child
            yield from inside(child, inner)

    yield from inside(tree, ())


def test_no_function_is_named_by_a_participle_alone() -> None:
    found = {
        f"{path} {name}"
        for path, tree in product(_NAME)
        for name, item in definitions(tree)
        if isinstance(item, Function) and is_participle(item.name) and not is_property(item)
    }
    assert sorted(found - PERMITTED.keys()) == []
    assert sorted(PERMITTED.keys() - found) == [], "not there any more"


def test_docstrings_begin_with_a_sentence() -> None:
    found = [
        f"{path} {name}"
        for path, tree in product(_DOCSTRING)
        for name, item in definitions(tree)
        if (ast.get_docstring(item) or "").startswith(SECTIONS)
    ]
    assert found == []


@pytest.mark.parametrize("name", ["found", "_taken", "retried", "_unknown", "__kept"])
def test_participles(name: str) -> None:
    assert is_participle(name)


@pytest.mark.parametrize(
    "name", ["find", "read", "need", "_feed", "known_schemas", "on_lost", "is_closed", "added_since", "__set__"]
)
def test_other_names(name: str) -> None:
    assert not is_participle(name)
