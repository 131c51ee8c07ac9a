"""First pass: read all schemas, and report the problems of all of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import attrs

from qmf.errors import Problem, SchemaError
from qmf.schema import Schema, read_schema


@attrs.frozen
class Source:
    """A schema and its file.

    Attributes:
        path: the file.
        schema: its content.
    """

    path: Path
    schema: Schema


def read_all(paths: Iterable[Path], warn: Callable[[Problem], None] | None = None) -> list[Source]:
    """Read schema files in the given order.

    Raises:
        SchemaError: with the problems of all of them.
        OSError: a file cannot be read.
    """
    sources: list[Source] = []
    problems: list[Problem] = []
    for path in paths:
        try:
            sources.append(Source(path, read_schema(path, warn)))
        except SchemaError as error:
            problems += error.problems
    if problems:
        raise SchemaError(problems)
    return sources
