"""Last pass: write all changes, or none."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from qmf_codegen.comparing import Change


def write(changes: Sequence[Change], report: Callable[[str], None]) -> None:
    """Write new contents next to every file, then replace all files; remove files that are not generated any more.

    If writing fails, every file stays unchanged. A file is replaced in one step: readers never see a part of it.

    Args:
        changes: the files to write or remove.
        report: called with a line for each file.

    Raises:
        OSError: no space, or no permission.
    """
    with contextlib.ExitStack() as stack:
        prepared = [
            (_prepare(change.path, change.after, stack), change.path) for change in changes if change.after is not None
        ]
        for temporary, path in prepared:
            temporary.replace(path)
            report(f"wrote {path}")
    for change in changes:
        if change.after is None:
            change.path.unlink()
            report(f"removed {change.path}")


def _prepare(path: Path, text: str, stack: contextlib.ExitStack) -> Path:
    """Write `text` to a temporary file beside `path`; the stack removes it unless it was moved."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    stack.callback(temporary.unlink, missing_ok=True)
    with os.fdopen(descriptor, "wb") as file:
        # Temporary files are private; generated files get the usual permissions.
        os.fchmod(file.fileno(), 0o666 & ~_umask())
        file.write(text.encode())
    return temporary


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
