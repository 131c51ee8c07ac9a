"""Python types and descriptors, as written in generated code."""

from __future__ import annotations

from qmf.schema import Argument, Property, QmfType, Statistic, Style

_ACCESSORS = {
    Style.COUNT: "CounterAttribute",
    Style.HILO: "HiLoAttribute",
    Style.MMA: "MmaAttribute",
}


def agent_descriptor(item: Property | Statistic) -> str:
    """The descriptor that declares a property or statistic of an agent's class."""
    if item.type.style is not Style.DIRECT:
        return _ACCESSORS[item.type.style]
    return "ReferenceAttribute" if item.type.name == "objId" else _attribute(item)


def console_descriptor(item: Property | Statistic) -> str:
    """The descriptor that declares a property or statistic of a console's class."""
    return _ACCESSORS[item.type.style] if item.type.style in (Style.HILO, Style.MMA) else _attribute(item)


def value_type(type: QmfType, *, optional: bool = False) -> str:
    """The type of a value that a program reads, or gets as an argument."""
    return f"{type.python} | None" if optional or type.name == "objId" else type.python


def agent_input_type(item: Property | Argument, *, optional: bool = False) -> str:
    """The type of a value that an agent's program passes; a reference is an object or an object id."""
    return "Ref" if item.type.name == "objId" else value_type(item.type, optional=optional)


def console_input_type(item: Property | Argument) -> str:
    """The type of a value that a console's program passes; a reference is a remote object or an object id."""
    return "Ref" if item.type.name == "objId" else item.type.python


def settable_type(item: Property) -> str:
    """The type of a property that a console's program may pass to `set`."""
    return f"{console_input_type(item)} | Unset" + (" | None" if item.optional else "")


def _attribute(item: Property | Statistic) -> str:
    return f"Attribute[{value_type(item.type, optional=isinstance(item, Property) and item.optional)}]"
