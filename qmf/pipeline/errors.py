"""Errors of the pipeline. Their cause is always the caller or the machine, never a peer on the bus."""

from __future__ import annotations

import errno
import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from qmf._extras import install_hint
from qmf.errors import CallerError

#: What the system says of a full file system.
FULL = (errno.ENOSPC, errno.EDQUOT)


class PipelineError(CallerError):
    """A job cannot do what was asked; the message says what and why, in one line."""


class LakeError(PipelineError):
    """The lake cannot be read or written; the message names the path and the reason."""


class NoSpaceError(LakeError):
    """The file system is full, or a quota is used up: nothing was committed, and it may be tried again."""


class MissingExtraError(PipelineError):
    """A library is not installed; `extra` brings it."""

    def __init__(self, library: str, extra: str = "pipeline") -> None:
        self.library = library
        self.extra = extra
        super().__init__(library, extra)

    def __str__(self) -> str:
        return f"{self.library} is not installed; get it with: {install_hint(self.extra)}"


def import_extra(module: str, extra: str = "pipeline") -> Any:
    """A module of a library that an extra brings; `MissingExtraError` if it is not installed."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise MissingExtraError(module.partition(".")[0], extra) from error


@contextmanager
def lake_errors(path: Path) -> Iterator[None]:
    """Raise each `OSError` of a block as a `LakeError` that names a path."""
    try:
        yield
    except OSError as error:
        kind = NoSpaceError if error.errno in FULL else LakeError
        raise kind(f"{path}: {error.strerror or error}") from error
