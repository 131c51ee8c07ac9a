"""Properties and plain statistics by assignment: types, bounds, marks, references."""

from __future__ import annotations

import gc
import pydoc
import weakref
from collections import OrderedDict
from uuid import UUID

import pytest
from agent.object_states import changed
from agent.warehouse import Belt, Shelf, Site

from qmf.agent import Attribute, CounterAttribute, ManagedObject, ObjectId
from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import BOTH, PROPERTIES, STATISTICS
from qmf.agent.model.object_values import take_update
from qmf.errors import CallerError, ConstraintError
from qmf.schema import TYPES, Access, ClassSchema, Property, Statistic


def test_a_new_object_holds_what_was_given_and_zero_or_the_bound_next_to_it() -> None:
    shelf = Shelf(number=7, label="top", class_="A")
    assert (shelf.number, shelf.label, shelf.class_) == (7, "top", "A")
    assert (shelf.limit, shelf.weight, shelf.open, shelf.options, shelf.tags) == (5, 0.0, False, {}, [])
    assert (shelf.token, shelf.nextRef, shelf.since) == (UUID(int=0), None, 0)
    assert changed(shelf) == BOTH


def test_values_on_the_wire() -> None:
    shelf = Shelf(number=7, siteRef=ObjectId("s"))
    values = shelf._qmf_values()
    assert list(values)[:4] == ["siteRef", "number", "limit", "weight"]
    assert values["siteRef"] == ObjectId("s")
    assert "label" not in values
    assert "nextRef" not in values
    assert type(values["number"]).__name__ == "UInt16"
    assert type(values["since"]).__name__ == "Int64"
    assert {"users", "usersHigh", "usersLow", "waitCount", "waitMin", "waitMax", "waitAvg"} <= set(values)
    assert set(shelf._qmf_values(statistics=False)) | set(shelf._qmf_values(properties=False)) == set(values)
    assert "in" not in shelf._qmf_values(statistics=False)


@pytest.mark.parametrize(
    ("name", "value", "stored", "marks"),
    [
        ("label", "low", "low", PROPERTIES),
        ("label", None, None, 0),
        ("limit", 50, 50, PROPERTIES),
        ("weight", 3, 3.0, PROPERTIES),
        ("weight", 0.0, 0.0, 0),
        ("open", True, True, PROPERTIES),
        ("open", False, False, 0),
        ("tags", [1, ("a", None)], [1, ["a", None]], PROPERTIES),
        ("options", OrderedDict(a={"b": 1.5}), {"a": {"b": 1.5}}, PROPERTIES),
        ("options", {}, {}, PROPERTIES),
        ("since", -5, -5, STATISTICS),
        ("class_", "B", "B", PROPERTIES),
        ("nextRef", ObjectId("x"), ObjectId("x"), PROPERTIES),
        ("nextRef", None, None, 0),
    ],
)
def test_assignment_stores_and_marks(shelf: Shelf, name: str, value: object, stored: object, marks: int) -> None:
    setattr(shelf, name, value)
    assert getattr(shelf, name) == stored
    assert type(getattr(shelf, name)) is type(stored)
    assert changed(shelf) == marks


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("limit", 4, "Shelf.limit (uint8): must be 5 to 50, not 4"),
        ("limit", 256, "Shelf.limit (uint8): must be 0 to 255, not 256"),
        ("limit", "7", "Shelf.limit (uint8): must be a whole number, not '7'"),
        ("limit", True, "Shelf.limit (uint8): must be a whole number, not True"),
        ("limit", None, "Shelf.limit (uint8): must be a whole number, not None"),
        ("label", "x" * 21, f"Shelf.label (sstr): must be at most 20 bytes long, not {'x' * 21!r}"),
        ("label", "ä" * 11, f"Shelf.label (sstr): must be at most 20 bytes long, not {'ä' * 11!r}"),
        ("label", b"x", "Shelf.label (sstr): must be a string, not b'x'"),
        ("weight", -0.5, "Shelf.weight (double): must be at least 0, not -0.5"),
        ("open", 1, "Shelf.open (bool): must be True or False, not 1"),
        ("token", "x", "Shelf.token (uuid): must be a UUID, not 'x'"),
        ("options", {"a": object}, "Shelf.options (map): must not hold a type, not <class 'object'>"),
        ("options", {1: 2}, "Shelf.options (map): must have strings as keys, not {1: 2}"),
        ("options", {"a": {1: 2}}, "Shelf.options (map): must have strings as keys, not 1"),
        ("options", {"a": 1 << 64}, f"Shelf.options (map): must hold integers of at most 64 bits, not {1 << 64}"),
        ("tags", {}, "Shelf.tags (list): must be a list, not {}"),
        ("nextRef", "x", "Shelf.nextRef (objId): must be a managed object, an object id or None, not 'x'"),
        ("number", 2, "Shelf.number (uint16): cannot change after the object is made, not 2"),
        ("siteRef", None, "Shelf.siteRef (objId): cannot change after the object is made, not None"),
        ("twice", 2, "Shelf.twice (uint64): is computed as '2 * (in - out)' and cannot be set, not 2"),
        ("in_", 2, "Shelf.in (count64): cannot be assigned; call .in.set(...), not 2"),
        ("wait", 2, "Shelf.wait (mmaTime): cannot be assigned; call .wait.sample(...), not 2"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(shelf: Shelf, name: str, value: object, text: str) -> None:
    before = shelf._qmf_values()
    with pytest.raises(ConstraintError) as caught:
        setattr(shelf, name, value)
    assert str(caught.value) == text
    assert shelf._qmf_values() == before
    assert changed(shelf) == 0


def test_nesting_is_limited(shelf: Shelf) -> None:
    value: list[object] = []
    for _ in range(40):
        value = [value]
    with pytest.raises(ConstraintError, match="deeper than 16"):
        shelf.tags = value


def test_long_keys_are_refused(shelf: Shelf) -> None:
    shelf.options = {"k" * 255: 1}
    with pytest.raises(ConstraintError, match="at most 255 bytes"):
        shelf.options = {"ä" * 128: 1}


def test_a_map_is_copied(shelf: Shelf) -> None:
    mine: dict[str, object] = {"a": [1]}
    shelf.options = mine
    mine["b"] = 2
    assert shelf.options == {"a": [1]}


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"number": None}, "Shelf.number (uint16): must be given to a new object, not None"),
        ({"number": 1 << 16}, "Shelf.number (uint16): must be 0 to 65535, not 65536"),
        ({"number": 1, "in": 5}, "Shelf.in (count64): cannot be given to a new object, not 5"),
    ],
)
def test_a_new_object_needs_the_required_values_of_its_class(values: dict[str, object], text: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        ManagedObject.__init__(Shelf.__new__(Shelf), **values)
    assert str(caught.value) == text


def test_unknown_names_are_refused() -> None:
    with pytest.raises(CallerError, match="class Shelf has no property or statistic 'size'"):
        ManagedObject.__init__(Shelf.__new__(Shelf), number=1, size=2)


def test_a_reference_to_an_object_without_agent_is_pending(shelf: Shelf) -> None:
    site = Site(name="north")
    shelf.nextRef = site
    seen = [shelf.nextRef]
    assert changed(shelf) == PROPERTIES
    update = take_update(shelf, 0)
    assert update is not None
    assert "nextRef" not in update.values
    assert take_update(shelf, 0) is None
    assert object_state.is_unresolved(shelf)
    object_state.set_object_id(site, ObjectId("north"))
    assert [*seen, shelf.nextRef] == [None, ObjectId("north")]
    update = take_update(shelf, 0)
    assert update is not None
    assert update.values["nextRef"] == ObjectId("north")
    assert not object_state.is_unresolved(shelf)


def test_a_reference_does_not_keep_an_object_with_id_alive(shelf: Shelf) -> None:
    site = Site(name="north")
    object_state.set_object_id(site, ObjectId("north"))
    shelf.nextRef = site
    kept = weakref.ref(site)
    del site
    gc.collect()
    assert kept() is None


def test_only_the_changed_group_is_published(shelf: Shelf) -> None:
    shelf.in_.inc()
    update = take_update(shelf, 0)
    assert update is not None
    assert set(update.values) == set(shelf._qmf_values(properties=False))
    shelf.limit = 9
    update = take_update(shelf, 0)
    assert update is not None
    assert set(update.values) == set(shelf._qmf_values(statistics=False))
    update.restore()
    assert changed(shelf) == PROPERTIES


def test_subclasses_share_the_layout() -> None:
    class MyShelf(Shelf):
        pass

    mine = MyShelf(number=3)
    mine.in_.inc()
    assert object_state.layout(mine) is object_state.layout(Shelf(number=4))
    assert Shelf.number is MyShelf.number


def test_descriptors_are_found_on_the_class() -> None:
    assert isinstance(Belt.speed, Attribute)
    assert Belt.speed.schema_name == "speed"


def test_help_shows_attributes_that_can_be_assigned_before_there_are_objects() -> None:
    class Bin(ManagedObject):
        _qmf_schema_ = ClassSchema(
            package="p", name="Bin", properties=(Property(name="size", type=TYPES["uint8"], access=Access.RW),)
        )
        size = Attribute[int]()

    text = pydoc.plain(pydoc.render_doc(Bin))
    assert "Readonly" not in text
    assert "size" in text.partition("Data descriptors defined here:")[2]
    with pytest.raises(AttributeError, match="the class has no objects yet"):
        object.__new__(Bin).size = 1


def test_repr_names_the_object() -> None:
    shelf = Shelf(number=1)
    assert repr(shelf) == "<Shelf without agent>"
    object_state.set_object_id(shelf, ObjectId("p:shelf:1"))
    assert repr(shelf) == "<Shelf p:shelf:1>"
    assert repr(shelf.in_) == "<Counter Shelf.in 0>"
    assert repr(shelf.wait) == "<Mma Shelf.wait 0 samples>"


def test_a_class_must_fit_its_schema() -> None:
    class Bare(ManagedObject):
        _qmf_schema_ = ClassSchema(package="p", name="Bare", properties=(Property(name="a", type=TYPES["bool"]),))

    with pytest.raises(CallerError, match="class Bare declares no attribute for a"):
        Bare()
    with pytest.raises(CallerError, match="ManagedObject has no schema"):
        ManagedObject()


@pytest.mark.parametrize(
    ("kind", "descriptor", "text"),
    [
        ("bool", CounterAttribute("a"), "Odd.a is a bool and cannot be declared as CounterAttribute"),
        ("count8", Attribute[int]("a"), "Odd.a is a count8 and cannot be declared as Attribute"),
    ],
)
def test_a_descriptor_must_fit_its_type(kind: str, descriptor: object, text: str) -> None:
    class Odd(ManagedObject):
        _qmf_schema_ = ClassSchema(package="p", name="Odd", statistics=(Statistic(name="a", type=TYPES[kind]),))
        a = descriptor

    with pytest.raises(CallerError, match=text):
        Odd()


@pytest.mark.parametrize(
    ("assign", "reason"),
    [("a + missing", "'missing' in the expression"), ("text + a", "'text' in the expression"), ("sum", "'sum'")],
)
def test_formulas_must_use_plain_numbers_of_the_class(assign: str, reason: str) -> None:
    class Wrong(ManagedObject):
        _qmf_schema_ = ClassSchema(
            package="p",
            name="Wrong",
            statistics=(
                Statistic(name="a", type=TYPES["uint8"]),
                Statistic(name="text", type=TYPES["sstr"]),
                Statistic(name="sum", type=TYPES["uint8"], assign=assign),
            ),
        )
        a = Attribute[int]("a")
        text = Attribute[str]("text")
        sum = Attribute[int]("sum")

    with pytest.raises(CallerError, match=reason):
        Wrong()
