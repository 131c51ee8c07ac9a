"""Reading schema files: the entry points.

The parser is loaded on first use, because generated models need this package but no parser.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qmf.errors import SchemaProblem
from qmf.schema.model import Schema


def read_schema(path: str | Path, warn: Callable[[SchemaProblem], None] | None = None) -> Schema:
    """Read a schema file.

    Args:
        path: path of the file; messages name it as given here.
        warn: called with each warning, in file order, also if there are errors; None ignores them.

    Returns:
        the package with its classes and events, their hashes included.

    Raises:
        SchemaError: the file is invalid; holds every problem with its line.
        OSError: the file cannot be read.
    """
    from qmf.schema.parsing.document import MAX_BYTES

    with Path(path).open("rb") as file:
        # One byte more than allowed shows that the file is too large, even if it is endless.
        data = file.read(MAX_BYTES + 1)
    return parse_schema(data, str(path), warn)


def parse_schema(
    data: bytes, name: str, warn: Callable[[SchemaProblem], None] | None = None, *, part: bool = False
) -> Schema:
    """Read a schema from memory.

    Args:
        data: the XML text, in the encoding that its declaration names.
        name: its name in messages.
        warn: as of `read_schema`.
        part: it is only a part of its package: references may name classes that are not in it.

    Raises:
        SchemaError: as of `read_schema`.
    """
    from qmf.schema.parsing.document import parse
    from qmf.schema.parsing.passes import read_document

    return read_document(parse(data, name), warn, part=part)
