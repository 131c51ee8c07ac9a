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


def value(type: QmfType, *, optional: bool = False) -> str:
    """The type of a value that a program reads or gets as an argument."""
    python = type.python
    return f"{python} | None" if optional or type.name == "objId" else python


def given(item: Property | Argument, *, optional: bool = False) -> str:
    """The type of a value that a program gives: for references, also the object itself."""
    return "Ref" if item.type.name == "objId" else value(item.type, optional=optional)
