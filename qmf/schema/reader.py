"""Reading schema files: the entry points.

The parser is loaded on first use: a generated model needs this package, but never an XML file.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from qmf.errors import Problem
from qmf.schema.model import Schema


def read_schema(path: str | Path, warn: Callable[[Problem], None] | None = None) -> Schema:
    """Read a schema file.

    Args:
        path: where it is; messages name it as given here.
        warn: called with each warning, in file order, also when there are errors; None drops them.

    Returns:
        the package with its classes and events, their hashes included.

    Raises:
        SchemaError: the file is invalid; holds every problem with its line.
        OSError: the file cannot be read.
    """
    from qmf.schema.document import MAX_BYTES

    with Path(path).open("rb") as file:
        # One byte more than allowed is enough to see that it is too large, even where the file never ends.
        data = file.read(MAX_BYTES + 1)
    return parse_schema(data, str(path), warn)


def parse_schema(data: bytes, name: str, warn: Callable[[Problem], None] | None = None) -> Schema:
    """Read a schema from memory.

    Args:
        data: the XML text, in any encoding that its declaration names.
        name: what messages call it.
        warn: as of `read_schema`.

    Raises:
        SchemaError: as of `read_schema`.
    """
    from qmf.schema.assembly import assemble
    from qmf.schema.document import parse

    return assemble(parse(data, name), warn)
