"""Failures of Delta tables as `LakeError`, in one line that names the table."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from qmf.pipeline.errors import FULL, LakeError, NoSpaceError, import_extra

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")

#: What the libraries below pass on of the system's error.
_FULL = re.compile(rf"(?:os error |Errno )(?:{'|'.join(str(number) for number in FULL)})\b")

#: Characters of a message at most.
_LENGTH = 300


def import_deltalake() -> Any:
    """The module `deltalake`; `MissingExtraError` if it is not installed."""
    import_extra("deltalake.exceptions")
    return import_extra("deltalake")


@contextmanager
def delta_errors(table: str) -> Iterator[None]:
    """Raise each failure of a block as a `LakeError` that names a table."""
    exceptions = import_deltalake().exceptions
    try:
        yield
    except (exceptions.DeltaError, OSError, ValueError) as error:
        kind = NoSpaceError if _FULL.search(str(error)) else LakeError
        raise kind(f"{table}: {_one_line(error)}") from error
    except BaseException as error:
        # A panic of the library is no `Exception`, and its class has no name that could be imported.
        if type(error).__name__ != "PanicException":
            raise
        raise LakeError(f"{table}: the library failed: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    """The words of an error in one line: the libraries below write several, the last ones nearest to the cause."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    plain = _COLOURS.sub("", str(error))
    if "\u21b3" in plain:
        parts = [" ".join(part.split()) for part in plain.split("\u21b3")]
        return f"{parts[0].removeprefix('Kernel error -> ')}: {': '.join(parts[1:])}"[:_LENGTH]
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    return lines[0][:_LENGTH] if lines else type(error).__name__
