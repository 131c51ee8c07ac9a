"""The error for an attribute that objects of a generated class don't have: refused by Python, explained by the class.

Generated classes have no dict, so Python refuses unknown names by itself; its message has no similar ones. A
`__setattr__` in Python that adds them makes every assignment four times as slow. So the base of managed objects is a
type in C where `unknown_names.c` was compiled, which costs nothing before an error; without it, only the development
mode (`python -X dev`) has the `__setattr__`.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import NoReturn

from qmf.errors import unknown_attribute

#: Set in the environment to use no compiled module.
NO_NATIVE = "QMF_NO_NATIVE"


class _PlainBase:
    """Errors are Python's own."""

    __slots__ = ()


class _DevelopmentBase:
    """As `NamesSimilar` of the compiled module, slowly."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        try:
            super().__setattr__(name, value)
        except AttributeError:
            if not hasattr(type(self), name):
                refuse_attribute(type(self), name)
            raise


def base_of_objects(*, native: bool, development: bool) -> type:
    """The base of managed objects, which has no attributes.

    Args:
        native: use the compiled module if there is one.
        development: otherwise, name similar attributes in Python.
    """
    if native:
        try:
            return importlib.import_module("qmf.agent.model._unknown_names").NamesSimilar  # type: ignore[no-any-return]
        except ImportError:
            pass
    return _DevelopmentBase if development else _PlainBase


def refuse_attribute(cls: type, name: str) -> NoReturn:
    """Raise the error for an attribute that objects of `cls` don't have.

    Raises:
        AttributeError: always; has similar names.
    """
    raise unknown_attribute(cls, name) from None


#: As it is here, and as the user wants it.
ObjectBase = base_of_objects(native=not os.environ.get(NO_NATIVE), development=sys.flags.dev_mode)
