"""Names that a class does not have are refused when they are assigned, at no cost for those that it has."""

from __future__ import annotations

import gc
import os
import sys
import types
import weakref
from typing import Any

import pytest
from agent.warehouse import Shelf, Site
from support.processes import run

from qmf.agent import Attribute, ManagedObject
from qmf.agent.model.unknown_names import base_of_objects
from qmf.errors import ConstraintError
from qmf.models.host import agent as model

#: The compiled module is there.
COMPILED = base_of_objects(native=True, development=False).__name__ == "NamesSimilar"
compiled = pytest.mark.skipif(not COMPILED, reason="not compiled (scripts/c_extensions.py)")


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


def test_assigning_goes_through_no_function_in_python() -> None:
    for cls in (ManagedObject, Site, model.Memory, Known):
        assert COMPILED or sys.flags.dev_mode or cls.__setattr__ is object.__setattr__
        assert sys.flags.dev_mode or not isinstance(cls.__setattr__, types.FunctionType)
    assert isinstance(vars(model.System)["cpus"], Attribute)


@compiled
def test_the_error_names_similar_ones() -> None:
    memory: Any = model.Memory(name="m")
    with pytest.raises(AttributeError) as caught:
        memory.totla = 1
    assert str(caught.value) == "'Memory' object has no attribute 'totla'; did you mean total?"
    assert caught.value.name == "totla"
    with pytest.raises(AttributeError, match=r"did you mean total\?"):
        del memory.totla
    with pytest.raises(AttributeError, match=r"no attribute 'zzz'$"):
        memory.zzz = 1


@compiled
def test_other_errors_stay_as_they_are() -> None:
    shelf: Any = Shelf(number=1)
    with pytest.raises(AttributeError, match="read-only"):
        shelf.move = 1
    with pytest.raises(ConstraintError, match=r"cannot be assigned; call \.free\.set"):
        assign(model.Memory(name="m"), "free", 1)
    with pytest.raises(TypeError, match="attribute name must be string"):
        vars(Shelf.__mro__[-2])["__setattr__"](shelf, 7, 1)


@compiled
def test_objects_live_as_long_as_they_are_used() -> None:
    site: Any = Site(name="s")
    gone = weakref.ref(site)
    for _ in range(100):
        with pytest.raises(AttributeError):
            site.nmae = 1
    del site
    gc.collect()
    assert gone() is None


@pytest.mark.slow
def test_without_the_compiled_module_the_development_mode_names_similar_ones() -> None:
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
    done = run([sys.executable, "-X", "dev", "-c", code], env=os.environ | {"QMF_NO_NATIVE": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    unknown, accessor, nothing, total = done.stdout.splitlines()
    assert unknown == "'Memory' object has no attribute 'totla'; did you mean total?"
    assert "cannot be assigned; call .free.set(...)" in accessor
    assert nothing == "'Memory' object has no attribute 'zzz'"
    assert total == "5"
