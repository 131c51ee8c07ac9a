"""Runtime base of generated classes: `ManagedObject`.

Generated classes declare properties, statistics and methods; their behaviour is here. Every name that is not generated
starts with ``_qmf_``, which no schema name can. Knows neither agent nor messages: an agent gives an object its id and
times, reads its values, and calls its methods.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, TypeAlias

from qmf.agent.accessors.descriptors import AccessorDescriptor, AttributeDescriptor
from qmf.agent.layout import object_state
from qmf.agent.layout.class_layout import PROPERTIES, STATISTICS, ClassLayout, slot_name
from qmf.agent.layout.object_state import StatefulObject
from qmf.agent.model.arguments import MaybeAwaitable
from qmf.agent.model.object_values import read
from qmf.agent.model.unknown_names import refuse_attribute
from qmf.errors import CallerError, ConstraintError
from qmf.protocol.values import ObjectId
from qmf.schema import ClassSchema
from qmf.schema.documentation import document

if TYPE_CHECKING:
    # Type checkers would allow every name for a base that they don't know.
    _Base = object
else:
    from qmf.agent.model.unknown_names import ObjectBase as _Base


class ManagedObjectMeta(type):
    """Gives objects of a generated class a slot for each accessor, and no dict: faster, smaller, no other names.

    Subclasses of generated classes have a dict, as usual, for the attributes of the program.
    """

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> ManagedObjectMeta:
        """Make the class."""
        accessors = [
            slot_name(item.schema_name or attribute)
            for attribute, item in namespace.items()
            if isinstance(item, AccessorDescriptor)
        ]
        if accessors or "_qmf_schema_" in namespace:
            namespace["__slots__"] = (*namespace.get("__slots__", ()), *accessors)
        return super().__new__(cls, name, bases, namespace)


class ManagedObject(StatefulObject, _Base, metaclass=ManagedObjectMeta):
    """A managed object: base of generated classes.

    Add an object with `Agent.add`, and set its values from any thread, also while it is in no agent. Subclass the
    generated class to implement its methods: synchronous ones run on the agent's event loop and must not block; others
    are `async def`.
    """

    __slots__ = ("__weakref__",)

    _qmf_schema_: ClassVar[ClassSchema]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        document(cls)

    def __init__(self, **values: object) -> None:
        """Make an object; generated classes have the signature.

        Args:
            values: properties and plain statistics by name; None stands for unset.

        Raises:
            ConstraintError: a value does not fit, or a required one is missing.
        """
        layout = layout_of(type(self))
        cells = object_state.initialize(self, layout)
        given = {layout.field(name): value for name, value in values.items() if value is not None}
        for field in layout.required:
            if field not in given:
                raise ConstraintError(field.where, field.type.name, None, "must be given to a new object")
        for field, value in given.items():
            if field.formula is not None or not field.direct:
                raise ConstraintError(field.where, field.type.name, value, "cannot be given to a new object")
        object_state.set_first_values(self, given)
        for field in layout.accessors:
            setattr(self, field.slot, layout.accessor_factories[field](self, cells, field))

    @classmethod
    def _qmf_refuse_attribute(cls, name: str) -> NoReturn:
        """Called when an attribute is set that objects of the class don't have; raises the error."""
        refuse_attribute(cls, name)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {object_state.object_id(self) or 'without agent'}>"

    def _qmf_set_property(self, name: str, value: Any) -> MaybeAwaitable[None]:
        """Called when a console sets a property: override to act on it, and to refuse.

        Args:
            name: schema name of a property with access RW.
            value: has passed all checks of the schema.

        Raises:
            MethodError: the change is refused; the console gets the text.
        """
        setattr(self, object_state.layout(self).field(name).python_name, value)
        return None  # overriding methods may return an awaitable

    def _qmf_values(self, *, properties: bool = True, statistics: bool = True) -> dict[str, object]:
        """Values for the wire, by wire name; see `object_values.read`."""
        return read(self, (PROPERTIES if properties else 0) | (STATISTICS if statistics else 0))


#: The values of references.
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
            layout.accessor_factories[field] = descriptor._make
    # If two threads build it at the same time, both are equal, and the last one stays.
    owner._qmf_layout_ = layout  # type: ignore[attr-defined]
    return layout


def _schema_class(cls: type[ManagedObject]) -> type[ManagedObject]:
    for owner in cls.__mro__:
        if "_qmf_schema_" in vars(owner):
            return owner
    raise CallerError(f"{cls.__name__} has no schema: subclass a class made by qmf-codegen")
