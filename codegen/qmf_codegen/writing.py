"""Last pass: write all changes, or none."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from qmf._atomic_files import replaced_file
from qmf_codegen.comparing import ChangedFile


def write(changes: Sequence[ChangedFile], report: Callable[[str], None]) -> None:
    """Write new contents next to every file, then replace all files; remove files that are not generated any more.

    If writing fails, every file stays unchanged. A file is replaced in one step: readers never see a part of it.

    Args:
        changes: the files to write or remove.
        report: called with a line for each file.

    Raises:
        OSError: no space, or no permission.
    """
    with contextlib.ExitStack() as written:
        for change in reversed(changes):  # the last is left first
            if change.after is not None:
                written.enter_context(_write(change.path, change.after, report))
    for change in changes:
        if change.after is None:
            change.path.unlink()
            report(f"removed {change.path}")


@contextlib.contextmanager
def _write(path: Path, text: str, report: Callable[[str], None]) -> Iterator[None]:
    """A file that has its new content after the block, if that ends without an error."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replaced_file(path) as file:
        file.write(text.encode())
        # What can go wrong goes wrong now, and no more files are open than one.
        file.close()
        yield
    report(f"wrote {path}")
