"""Runtime base of generated classes: `ManagedObject`.

Generated code declares; what it declares works through here. Every name that is not generated starts with ``_qmf_``,
which no schema name can. Knows neither agent nor messages: an agent gives an object its id and time stamps, takes its
values, and calls its methods.
"""

from __future__ import annotations

from typing import Any, ClassVar, TypeAlias

from qmf.agent.accessors.descriptors import AccessorDescriptor, AttributeDescriptor
from qmf.agent.layout.class_layout import PROPERTIES, STATISTICS, Cells, ClassLayout, FieldLayout, slot_name
from qmf.agent.layout.references import Referable, is_pending
from qmf.agent.model.arguments import MaybeAwaitable
from qmf.agent.model.values import PendingUpdate, read, take
from qmf.errors import CallerError, ConstraintError
from qmf.protocol.objects import Entries, Lead
from qmf.protocol.values import ObjectId
from qmf.schema import ClassSchema
from qmf.schema.documentation import document


class ManagedObjectMeta(type):
    """Gives instances of a generated class a slot for each accessor: quicker to reach than in a dict, and smaller."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> ManagedObjectMeta:
        """Make the class."""
        accessors = [
            slot_name(item.schema_name or attribute)
            for attribute, item in namespace.items()
            if isinstance(item, AccessorDescriptor)
        ]
        if accessors:
            namespace["__slots__"] = (*namespace.get("__slots__", ()), *accessors)
        return super().__new__(cls, name, bases, namespace)


class ManagedObject(Referable, metaclass=ManagedObjectMeta):
    """A thing that is managed: base of generated classes.

    Make one, hand it to `Agent.add`, and set its values from any thread, whether or not an agent has it. Subclass the
    generated class to implement its methods: synchronous ones run on the agent's event loop and must not block; others
    are `async def`.
    """

    __slots__ = (
        "__dict__",
        "__weakref__",
        "_qmf_cells",
        "_qmf_create_ts",
        "_qmf_due",
        "_qmf_encoded",
        "_qmf_home",
        "_qmf_layout",
        "_qmf_lead",
        "_qmf_pending",
        "_qmf_properties_tick",
        "_qmf_statistics_tick",
        "_qmf_update_ts",
    )

    _qmf_schema_: ClassVar[ClassSchema]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        document(cls)

    def __init__(self, **values: object) -> None:
        """Make an object; generated classes state the arguments.

        Args:
            values: properties and plain statistics by name; None stands for unset.

        Raises:
            ConstraintError: a value does not fit, or a required one is missing.
        """
        layout = layout_of(type(self))
        self._qmf_id: ObjectId | None = None
        self._qmf_layout = layout
        self._qmf_cells: Cells = layout.new_cells()
        self._qmf_pending = False
        self._qmf_due = 0
        self._qmf_home: object | None = None
        # What the agent's loop keeps of encoded properties, until they change.
        self._qmf_encoded: Entries | None = None
        self._qmf_lead: Lead | None = None
        self._qmf_create_ts = self._qmf_update_ts = 0
        self._qmf_properties_tick = self._qmf_statistics_tick = 0
        given = {self._qmf_field(name): value for name, value in values.items() if value is not None}
        for field in layout.required:
            if field not in given:
                raise ConstraintError(field.where, field.type.name, None, "must be given to a new object")
        for field, value in given.items():
            if field.formula is not None or not field.direct:
                raise ConstraintError(field.where, field.type.name, value, "cannot be given to a new object")
            stored = self._qmf_cells[field.cell] = field.check(value)
            if isinstance(stored, Referable) and is_pending(stored):
                self._qmf_pending = True
        for field in layout.accessors:
            setattr(self, field.slot, layout.makers[field](self, field))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._qmf_id or 'without agent'}>"

    def _qmf_set_property(self, name: str, value: Any) -> MaybeAwaitable[None]:
        """Called when a console sets a property: override to act on it, and to refuse.

        Args:
            name: schema name of a property with access RW.
            value: has passed all checks of the schema.

        Raises:
            MethodError: what the console gets to read as the reason of the refusal.
        """
        setattr(self, self._qmf_field(name).python_name, value)
        return None  # overriding methods may return an awaitable

    def _qmf_field(self, name: str) -> FieldLayout:
        field = self._qmf_layout.by_name.get(name)
        if field is None:
            raise CallerError(f"class {self._qmf_layout.schema.name} has no property or statistic {name!r}")
        return field

    def _qmf_values(self, *, properties: bool = True, statistics: bool = True) -> dict[str, object]:
        """Values for the wire, by wire name; see `qmf.agent.model.values.read`."""
        return read(self, (PROPERTIES if properties else 0) | (STATISTICS if statistics else 0))

    def _qmf_take(self, tick: int = 0) -> PendingUpdate | None:
        """For the publisher: the values of the groups that changed, and a new interval. None if nothing changed."""
        return take(self, tick)


#: What a reference can be set to.
Ref: TypeAlias = ManagedObject | ObjectId | None


def layout_of(cls: type[ManagedObject]) -> ClassLayout:
    """The layout of a managed class, built at the first call.

    Raises:
        CallerError: `cls` is not a generated class, or does not fit its schema.
    """
    owner = _schema_class(cls)
    layout = owner.__dict__.get("_qmf_layout_")
    if isinstance(layout, ClassLayout):
        return layout
    descriptors = {
        item.schema_name: (name, item) for name, item in vars(owner).items() if isinstance(item, AttributeDescriptor)
    }
    layout = ClassLayout(owner._qmf_schema_, {schema_name: name for schema_name, (name, _) in descriptors.items()})
    for field in layout:
        descriptor = descriptors[field.name][1]
        if field.direct is isinstance(descriptor, AccessorDescriptor):
            raise CallerError(
                f"{field.where} is a {field.type.name} and cannot be declared as {type(descriptor).__name__}"
            )
        descriptor._bind(field)
        if isinstance(descriptor, AccessorDescriptor):
            layout.makers[field] = descriptor._make
    # Two threads may build it at once: the same twice, and the last one stays.
    owner._qmf_layout_ = layout  # type: ignore[attr-defined]
    return layout


def _schema_class(cls: type[ManagedObject]) -> type[ManagedObject]:
    for owner in cls.__mro__:
        if "_qmf_schema_" in vars(owner):
            return owner
    raise CallerError(f"{cls.__name__} has no schema: subclass a class made by qmf-codegen")
