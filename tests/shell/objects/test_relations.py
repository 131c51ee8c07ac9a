"""Which reference is the parent."""

from __future__ import annotations

import attrs
import pytest
from qmf_shell.objects.relations import parent_property
from shell.fakes import FILESYSTEM, PROCESS, FakeBackend

from qmf.schema import TYPES, ClassSchema, Property


def reference(name: str, *, index: bool = False, optional: bool = False, parent_ref: bool = False) -> Property:
    return Property(name=name, type=TYPES["objId"], index=index, optional=optional, parent_ref=parent_ref)


@pytest.mark.parametrize(
    ("properties", "parent"),
    [
        ((reference("a"), reference("b", parent_ref=True)), "b"),
        ((reference("a"), reference("b", index=True)), "b"),
        ((reference("a", optional=True), reference("b")), "b"),
        ((reference("a", optional=True),), None),
        ((), None),
    ],
)
def test_which_reference_is_the_parent(properties: tuple[Property, ...], parent: str | None) -> None:
    found = parent_property(ClassSchema(package="p", name="c", properties=properties))
    assert (found.name if found else None) == parent


def test_an_optional_parent_counts_where_it_is_marked(backend: FakeBackend) -> None:
    marked = attrs.evolve(FILESYSTEM, properties=(reference("parent", optional=True, parent_ref=True),))
    assert parent_property(marked) is not None
    assert parent_property(PROCESS) is None
