"""Exports of packages that are loaded when they are first used.

A program that needs one name of a package shall not pay for the others: importing `qmf.console` for its `Session` costs
no proton before there is a broker to connect to. Type checkers see the plain imports beside the table, and a test
keeps the two equal.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping


def lazy_exports(package: str, modules: Mapping[str, str]) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package.

    Args:
        package: its `__name__`.
        modules: names that each module gives, separated by blanks.
    """
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def get(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(importlib.import_module(homes[name]), name)
        setattr(sys.modules[package], name, value)  # the next access finds it without us
        return value

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return get, names
