"""What an agent writes of its objects is what the general encoder makes of their values, whatever their class."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, ClassVar
from uuid import UUID

import attrs
import pytest
from agent.warehouse import Belt, Shelf, Site
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from qmf.agent import (
    Attribute,
    Counter,
    CounterAttribute,
    Event,
    HiLoAttribute,
    ManagedObject,
    MmaAttribute,
    ObjectId,
    ReferenceAttribute,
)
from qmf.agent.accessors.locking import locking_subclass
from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import BOTH, PROPERTIES, STATISTICS, FieldLayout
from qmf.agent.model.managed_object import ManagedObjectMeta
from qmf.agent.model.object_values import read_raw_values, values_by_name
from qmf.agent.model.value_readers import make_reader, make_taker, statistics_source
from qmf.agent.objects.object_store import ManagedObjectStore, object_data
from qmf.agent.publishing.event_raiser import EventWriter
from qmf.agent.publishing.object_writer import ObjectWriter, columns_of
from qmf.agent.publishing.row_writer import RowWriter
from qmf.agent.publishing.row_writer import content as row_content
from qmf.codec import EncodeError
from qmf.protocol import BodyForm, Envelope, EventData, ObjectData, ObjectsResponse, decode, encode
from qmf.protocol.objects import RowEncoder, encode_event, encode_object, keyed_encoding, row_encoding
from qmf.schema import TYPES, Argument, ClassSchema, EventSchema, Property, Statistic, Style

DESCRIPTORS = {Style.COUNT: CounterAttribute, Style.HILO: HiLoAttribute, Style.MMA: MmaAttribute}
IDS = st.builds(ObjectId, st.text(max_size=5), st.none() | st.text(max_size=5), st.integers(0, 2**32 - 1))
VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False),
    "uuid": st.integers(0, 2**128 - 1).map(lambda number: UUID(int=number)),
    "sstr": st.text(max_size=60),
    "lstr": st.text(max_size=80),
    "map": st.dictionaries(st.text(max_size=5), st.integers(-9, 9) | st.text(max_size=3) | IDS, max_size=2),
    "list": st.lists(st.integers(-9, 9) | st.text(max_size=3) | IDS, max_size=2),
    "objId": st.none() | IDS,
}
NAMES = itertools.count()


def value_of(name: str) -> st.SearchStrategy[Any]:
    kind = TYPES[name]
    return VALUES[name] if kind.minimum is None else st.integers(kind.minimum, kind.maximum)


DIRECT = [name for name, kind in TYPES.items() if kind.style is Style.DIRECT]


def managed(properties: list[tuple[str, bool]], statistics: list[str], assign: bool) -> type[ManagedObject]:
    """A class with these types, some properties optional; the last statistic may be computed from the others."""
    items: list[Statistic] = [Statistic(name=f"s{i}", type=TYPES[name]) for i, name in enumerate(statistics)]
    numbers = [item for item in items if item.type.is_integer and item.type.style is not Style.MMA]
    if assign and numbers:
        text = " + ".join(item.name for item in numbers) + " - 2"
        items.append(Statistic(name="sum", type=TYPES["count32"], assign=text))
    schema = ClassSchema(
        package="org.example.any",
        name=f"Any{next(NAMES)}",
        hash=UUID(int=5),
        properties=tuple(
            Property(name=f"p{i}", type=TYPES[name], optional=optional) for i, (name, optional) in enumerate(properties)
        ),
        statistics=tuple(items),
    )
    space: dict[str, Any] = {"_qmf_schema_": schema}
    declared: list[Property | Statistic] = [*schema.properties, *schema.statistics]
    for item in declared:
        plain = ReferenceAttribute if item.type.name == "objId" else Attribute
        space[item.name] = DESCRIPTORS.get(item.type.style, plain)(item.name)
    return ManagedObjectMeta(schema.name, (ManagedObject,), space)  # type: ignore[return-value]


CLASSES = st.builds(
    managed,
    st.lists(st.tuples(st.sampled_from(DIRECT), st.booleans()), max_size=8),
    st.lists(st.sampled_from(list(TYPES)), max_size=8),
    st.booleans(),
)


def fill(obj: ManagedObject, data: st.DataObject) -> None:
    """Give an object values."""
    for field in object_state.layout(obj):
        if field.formula is not None or data.draw(st.booleans()):
            continue
        value = data.draw(value_of(field.type.name if field.direct else field.type.base))
        if field.direct:
            setattr(obj, field.python_name, value)
        elif field.type.style is Style.MMA:
            getattr(obj, field.name).sample(value)
        else:
            getattr(obj, field.name).set(value)


def general(data: ObjectData) -> bytes:
    return encode_object(data)


def as_read(objects: list[ObjectData], items: list[Any]) -> None:
    """Rows are read like the ordinary messages of the same objects."""

    def read(content: ObjectsResponse) -> list[Any]:
        message = decode(encode(Envelope(content=content, to="a")))
        assert isinstance(message, Envelope)
        assert isinstance(message.content, ObjectsResponse)
        return [attrs.evolve(item, values=dict(item.values)) for item in message.content.objects]

    content = row_content(ObjectsResponse, items)
    assert isinstance(content, ObjectsResponse)
    assert read(content) == read(ObjectsResponse(objects))


@examples(40)
@given(st.data(), CLASSES)
def test_any_class_is_written_like_the_general_encoder_does(data: st.DataObject, cls: type[ManagedObject]) -> None:
    store = ManagedObjectStore("v:p:i", data.draw(st.integers(0, 9)), lambda: 7)
    writer, rows = ObjectWriter(store, BodyForm.DATA010), RowWriter(store)
    objects = [cls(), cls()]
    for obj in objects:
        store.add(obj, data.draw(st.text(max_size=300)) + str(id(obj)))
    for _ in range(3):
        for obj in objects:
            if data.draw(st.booleans()):
                fill(obj, data)
            whole = object_data(obj, obj._qmf_values())
            layout = object_state.layout(obj)
            assert writer.whole(obj) == general(whole)
            assert writer.name_only(obj) == general(object_data(obj, {}))
            names = frozenset(data.draw(st.sets(st.sampled_from(sorted(whole.values) or ["none"]))))
            some = {name: value for name, value in whole.values.items() if name in names}
            as_read([whole] * 2, [rows.whole(obj)] * 2)
            as_read([object_data(obj, some)], [rows.read(obj, read_raw_values(obj, BOTH), names)])
            as_read([object_data(obj, some), whole], [rows.data(layout, whole, names), rows.data(layout, whole, None)])
            for groups in (PROPERTIES, STATISTICS, BOTH):
                raw = read_raw_values(obj, groups)
                assert writer.part(obj, groups, raw) == general(object_data(obj, values_by_name(layout, groups, raw)))


@examples(25)
@given(st.data(), CLASSES)
def test_accessors_with_locks_are_read_the_same(data: st.DataObject, cls: type[ManagedObject]) -> None:
    one, two = cls(), cls()
    layout = object_state.layout(one)
    for field in layout.accessors:
        if field.formula is None:
            accessor = getattr(two, field.slot)
            kind: Any = type(accessor)
            setattr(two, field.slot, locking_subclass(kind)(object_state.cells(two), field))
    for _ in range(3):
        for field in layout.accessors:
            if field.formula is None and data.draw(st.booleans()):
                value = data.draw(st.integers(0, 255))
                for obj in (one, two):
                    accessor = getattr(obj, field.slot)
                    accessor.sample(value) if field.type.style is Style.MMA else accessor.set(value)
        assert make_reader(layout, BOTH)(one) == make_reader(layout, BOTH, locked=True)(two)
        if not {"map", "list", "objId"} & {base.base for field in layout.statistics for _, base in field.wire}:
            properties = len(layout.wire[PROPERTIES])
            encoder = RowEncoder(layout.key, ObjectId(""), columns_of(layout, BOTH), properties)
            lead = encoder.lead("n", [None] * properties)
            parameters = "obj, lead, update, create, delete"
            quick, locked = (
                encoder.row_function(statistics_source(layout, locked=locked), parameters) for locked in (False, True)
            )
            written = quick(one, lead, 3, 2, 0)
            assert written == locked(two, lead, 3, 2, 0)
            assert written == encoder.row(3, 2, 0, lead, read_raw_values(one, STATISTICS))
        assert make_taker(layout, STATISTICS)(one) == make_taker(layout, STATISTICS, locked=True)(two)


@examples(40)
@given(st.data(), st.lists(st.sampled_from(DIRECT), max_size=8), st.integers(0, 2**64 - 1), st.integers(0, 7))
def test_any_event_is_written_like_the_general_encoder_does(
    data: st.DataObject, types: list[str], time: int, severity: int
) -> None:
    arguments = tuple(Argument(name=f"a{i}", type=TYPES[name]) for i, name in enumerate(types))

    class Happening(Event):
        _qmf_schema_: ClassVar[EventSchema] = EventSchema(
            package="p", name="happening", hash=UUID(int=1), arguments=arguments
        )

    writer = EventWriter(Happening)
    for _ in range(2):
        event = Happening()
        for item in arguments:
            # Slots are the generated classes' own.
            object.__setattr__(event, item.name, data.draw(value_of(item.type.name)))
        expected = EventData(
            values=event._qmf_values(), class_key=Happening._qmf_schema_.key, timestamp=time, severity=severity
        )
        assert writer.item(writer.arguments(event), time, severity) == encode_event(expected)


@pytest.fixture
def store() -> ManagedObjectStore:
    return ManagedObjectStore("v:p:i", 3, lambda: 7)


def change_label(shelf: Shelf) -> None:
    shelf.label = "new"


def change_options(shelf: Shelf) -> None:
    shelf.options = {"a": [1]}


@pytest.mark.parametrize("change", [change_label, change_options, lambda shelf: shelf.in_.inc()])
def test_encoded_properties_are_dropped_when_they_change(
    store: ManagedObjectStore, change: Callable[[Shelf], None]
) -> None:
    writer, rows = ObjectWriter(store, BodyForm.DATA010), RowWriter(store)
    shelf = Shelf(number=1, label="old")
    store.add(shelf, None)
    for _ in range(2):
        assert writer.whole(shelf) == general(object_data(shelf, shelf._qmf_values()))
        as_read([object_data(shelf, shelf._qmf_values())], [rows.whole(shelf)])
    assert object_state.kept_encoding(shelf, object_state.ENTRIES, store.changes.tick) is not None
    assert object_state.kept_encoding(shelf, object_state.LEAD, store.changes.tick) is not None
    change(shelf)
    as_read([object_data(shelf, shelf._qmf_values())], [rows.whole(shelf)])
    assert writer.whole(shelf) == general(object_data(shelf, shelf._qmf_values()))


def test_a_reference_becomes_valid_unseen(store: ManagedObjectStore) -> None:
    writer, rows = ObjectWriter(store, BodyForm.DATA010), RowWriter(store)
    late = Site(name="late")
    shelf = Shelf(number=1, nextRef=late)
    store.add(shelf, None)
    assert "nextRef" not in shelf._qmf_values()
    for _ in range(2):
        assert writer.whole(shelf) == general(object_data(shelf, shelf._qmf_values()))
    store.add(late, None)
    assert "nextRef" in shelf._qmf_values()
    assert writer.whole(shelf) == general(object_data(shelf, shelf._qmf_values()))
    as_read([object_data(shelf, shelf._qmf_values())], [rows.whole(shelf)])


@pytest.mark.parametrize("key", ["k", "\u20ac", "a\udcff", "x" * 20_000])
def test_names_of_all_kinds(store: ManagedObjectStore, key: str) -> None:
    belt = Belt(speed=1.5)
    store.add(belt, key)
    assert ObjectWriter(store, BodyForm.DATA010).whole(belt) == general(object_data(belt, belt._qmf_values()))


def test_a_value_that_does_not_fit_a_row_is_an_error(store: ManagedObjectStore) -> None:
    belt = Belt()
    store.add(belt, "a\udcff")
    with pytest.raises(EncodeError, match="lone surrogate"):
        RowWriter(store).whole(belt)


def test_a_statistic_that_does_not_fit_a_row_is_an_error(store: ManagedObjectStore) -> None:
    cls = managed([("sstr", False)], ["sstr", "count32"], assign=False)
    obj, other = cls(), cls()
    for item in (obj, other):
        store.add(item, str(id(item)))
    rows = RowWriter(store)
    obj.s0 = "a\udcff"  # type: ignore[attr-defined]
    with pytest.raises(EncodeError, match=r"lone surrogate: 'a\\udcff'"):
        rows.whole(obj)
    as_read([object_data(other, other._qmf_values())], [rows.whole(other)])
    obj.s0 = "a"  # type: ignore[attr-defined]
    as_read([object_data(obj, obj._qmf_values())], [rows.whole(obj)])
    wide = FieldLayout(Statistic(name="s1", type=TYPES["count64"]), cls.__name__, "s1")
    counter = Counter(object_state.cells(obj), wide)
    setattr(obj, wide.slot, counter)
    counter.set(2**32)
    with pytest.raises(EncodeError, match="out of the range"):
        rows.whole(obj)


def test_rows_of_several_classes_go_together(store: ManagedObjectStore) -> None:
    shelf, site, other = Shelf(number=1), Site(name="s"), Shelf(number=2)
    for obj in (shelf, site, other):
        store.add(obj, None)
    rows = RowWriter(store)
    found = [rows.whole(obj) for obj in (shelf, site, other)]
    content = row_content(ObjectsResponse, found)
    assert [len(block.rows) for block in content.blocks] == [len(found[0][1]) + len(found[2][1]), len(found[1][1])]
    described = [object_data(obj, obj._qmf_values()) for obj in (shelf, other, site)]
    as_read(described, found)
    assert row_content(ObjectsResponse, []) == ObjectsResponse([], [])


def test_selections_are_not_remembered_for_ever(store: ManagedObjectStore) -> None:
    rows = RowWriter(store)
    shelf = Shelf(number=1)
    store.add(shelf, None)
    names = sorted(shelf._qmf_values())
    for chosen in itertools.islice(itertools.combinations(names, 3), 250):
        rows.read(shelf, read_raw_values(shelf, BOTH), frozenset(chosen))
    assert 0 < rows.selection.cache_info().currsize <= 100


def test_the_functions_of_a_class_are_made_once_for_all_agents(monkeypatch: pytest.MonkeyPatch) -> None:
    stores = [ManagedObjectStore(name, 1, lambda: 5) for name in ("a", "b")]
    shelves = [Shelf(number=number) for number in range(2)]
    written = []
    for store, shelf in zip(stores, shelves, strict=True):
        store.add(shelf, "k")
        written.append((ObjectWriter(store, BodyForm.DATA010).whole(shelf), RowWriter(store).whole(shelf)[1]))
        # The first ones have made all that the class needs.
        monkeypatch.setattr(keyed_encoding, "compile_function", None)
        monkeypatch.setattr(row_encoding, "compile_function", None)
    assert written[0] != written[1]
