"""Names that a class does not have are refused when they are assigned, at no cost for those that it has."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from agent.warehouse import Site
from support.processes import run

from qmf.agent import Attribute, ManagedObject
from qmf.models.host import agent as model


def assign(obj: Any, name: str, value: object) -> None:
    setattr(obj, name, value)


class Known(Site):
    """A program's own class."""

    def __init__(self) -> None:
        super().__init__(name="s")
        self.own = 1


@pytest.mark.parametrize("make", [lambda: Site(name="s"), lambda: model.Memory(name="m")])
def test_an_object_of_a_generated_class_takes_no_other_names(make: Any) -> None:
    obj = make()
    assert not hasattr(obj, "__dict__")
    with pytest.raises(AttributeError, match="object has no attribute 'nmae'"):
        assign(obj, "nmae", 1)
    assert not hasattr(obj, "nmae")


def test_a_subclass_of_the_program_has_attributes_of_its_own() -> None:
    obj = Known()
    obj.own = 2
    assign(obj, "more", 3)
    assert obj.__dict__ == {"own": 2, "more": 3}


def test_assigning_goes_through_no_function_of_the_class() -> None:
    for cls in (ManagedObject, Site, model.Memory, Known):
        assert sys.flags.dev_mode or cls.__setattr__ is object.__setattr__
    assert isinstance(vars(model.System)["cpus"], Attribute)


@pytest.mark.slow
def test_the_development_mode_names_similar_ones() -> None:
    code = """
from qmf.models.host.agent import Memory
memory = Memory(name="m")
memory.total = 5
for name in ("totla", "free", "zzz"):
    try:
        setattr(memory, name, 1)
    except (AttributeError, ValueError) as error:
        print(error)
print(memory.total)
"""
    done = run([sys.executable, "-X", "dev", "-c", code])
    assert (done.returncode, done.stderr) == (0, "")
    unknown, accessor, nothing, total = done.stdout.splitlines()
    assert unknown == "'Memory' object has no attribute 'totla'; did you mean total?"
    assert "cannot be assigned; call .free.set(...)" in accessor
    assert nothing == "'Memory' object has no attribute 'zzz'"
    assert total == "5"
