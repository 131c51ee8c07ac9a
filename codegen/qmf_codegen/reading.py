"""First pass: read all schemas, and report the problems of all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from qmf.errors import SchemaError, SchemaProblem
from qmf.schema import Schema, read_schema


@attrs.frozen
class SchemaFile:
    """A schema and its file.

    Attributes:
        path: the file.
        schema: its content.
    """

    path: Path
    schema: Schema


def read_all(paths: Iterable[Path], warn: Callable[[SchemaProblem], None] | None = None) -> list[SchemaFile]:
    """Read schema files in the given order.

    Raises:
        SchemaError: with the problems of all of them.
        OSError: a file cannot be read.
    """
    sources: list[SchemaFile] = []
    problems: list[SchemaProblem] = []
    for path in paths:
        try:
            sources.append(SchemaFile(path, read_schema(path, warn)))
        except SchemaError as error:
            problems += error.problems
    if problems:
        raise SchemaError(problems)
    return sources
