"""Python types and descriptors, as written in generated code."""

from __future__ import annotations

from qmf.schema import Argument, Property, QmfType, Statistic, Style

_DESCRIPTORS = {
    Style.COUNT: "CounterAttribute",
    Style.HILO: "HiLoAttribute",
    Style.MMA: "MmaAttribute",
}


def descriptor(item: Property | Statistic) -> str:
    """The descriptor that declares a property or statistic."""
    if item.type.style is not Style.DIRECT:
        return _DESCRIPTORS[item.type.style]
    if item.type.name == "objId":
        return "ReferenceAttribute"
    return f"Attribute[{value(item.type, optional=isinstance(item, Property) and item.optional)}]"


def remote_descriptor(item: Property | Statistic) -> str:
    """The descriptor that declares a property or statistic of a remote object."""
    if item.type.style in (Style.HILO, Style.MMA):
        return _DESCRIPTORS[item.type.style]
    return f"Attribute[{value(item.type, optional=isinstance(item, Property) and item.optional)}]"


def value(type: QmfType, *, optional: bool = False) -> str:
    """The type of a value that a program reads or gets as an argument."""
    python = type.python
    return f"{python} | None" if optional or type.name == "objId" else python


def given(item: Property | Argument, *, optional: bool = False) -> str:
    """The type of a value that a program gives: for references, also the object itself."""
    return "Ref" if item.type.name == "objId" else value(item.type, optional=optional)


def received(item: Argument) -> str:
    """The type of a value that a console receives."""
    return value(item.type)


def asked(item: Property | Argument) -> str:
    """The type of a value that a console sends: for references, a remote object or its id."""
    return "Ref" if item.type.name == "objId" else item.type.python


def settable(item: Property) -> str:
    """The type of a property's value that a console sends if it wants to."""
    return f"{asked(item)} | Unset" + (" | None" if item.optional else "")
