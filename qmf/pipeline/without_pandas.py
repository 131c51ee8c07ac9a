"""Processes without pandas: Arrow imports it with its datasets where it is installed, and the pipeline never uses it.

It takes a third of a second of the processor, as long as all other imports of a command.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec
from types import ModuleType


class _NoPandas:
    """Finds no pandas: the module is as if it were not installed."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> ModuleSpec | None:
        """As of `importlib.abc.MetaPathFinder`."""
        if fullname == "pandas":
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return None


@contextmanager
def without_pandas() -> Iterator[None]:
    """In the block no module can import pandas."""
    finder = _NoPandas()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
