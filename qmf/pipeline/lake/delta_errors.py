"""Failures of Delta tables as `LakeError`, in one line that names the table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from qmf.pipeline.errors import LakeError, MissingExtraError


def import_deltalake() -> Any:
    """The module `deltalake`.

    Raises:
        MissingExtraError: it is not installed.
    """
    try:
        import deltalake
        import deltalake.exceptions
    except ModuleNotFoundError as error:
        raise MissingExtraError("deltalake") from error
    return deltalake


@contextmanager
def delta_errors(table: str) -> Iterator[None]:
    """Raise each failure of a block as a `LakeError` that names a table."""
    exceptions = import_deltalake().exceptions
    try:
        yield
    except (exceptions.DeltaError, OSError, ValueError) as error:
        raise LakeError(f"{table}: {_one_line(error)}") from error


def _one_line(error: BaseException) -> str:
    """The words of an error without its context: the libraries below write several lines."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
