"""Last pass: write what changed, all of it or nothing."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from qmf_codegen.comparing import Change


def write(changes: Sequence[Change], tell: Callable[[str], None]) -> None:
    """Write new contents next to every file, and then replace them all; remove what should not be there.

    Whatever goes wrong while writing leaves every file as it was. A file is replaced at once, so that nobody ever reads
    half of one.

    Args:
        tell: called with a line for each file.

    Raises:
        OSError: no place, or no permission.
    """
    with contextlib.ExitStack() as stack:
        prepared = [
            (_prepare(change.path, change.after, stack), change.path) for change in changes if change.after is not None
        ]
        for temporary, path in prepared:
            temporary.replace(path)
            tell(f"wrote {path}")
    for change in changes:
        if change.after is None:
            change.path.unlink()
            tell(f"removed {change.path}")


def _prepare(path: Path, text: str, stack: contextlib.ExitStack) -> Path:
    """Write `text` to a file beside `path`; the stack removes it, unless it has been moved."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    stack.callback(temporary.unlink, missing_ok=True)
    with os.fdopen(descriptor, "wb") as file:
        # Temporary files are private; generated ones are as readable as any other.
        os.fchmod(file.fileno(), 0o666 & ~_umask())
        file.write(text.encode())
    return temporary


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
