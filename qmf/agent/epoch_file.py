"""The epoch file: it counts the starts of an agent.

There is one file per kind of agent, or per agent if the program names the instance. A lock beside it serializes
processes that start at the same time; the file is replaced in one step, so that a crash leaves the old or the new one.
"""

from __future__ import annotations

import contextlib
import json
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

from qmf._atomic_files import PRIVATE, replace_file
from qmf.errors import CallerError

try:
    import fcntl
except ImportError:  # not on every system
    fcntl = None  # type: ignore[assignment]

_log = logging.getLogger("qmf.agent")

#: Largest epoch: the field that C++ consoles read it into has 32 bits.
EPOCH_MAX = (1 << 32) - 1


def count_start(folder: Path, kind: Sequence[str], instance: str | None, otherwise: int) -> tuple[str, int]:
    """Count one start.

    Args:
        folder: of the file; it is made if it does not exist.
        kind: vendor and product.
        instance: of the agent; None for the one in the file, or a new one.
        otherwise: the epoch to continue from if the file is damaged: beyond any count, so that the epoch still differs.

    Returns:
        the instance and the epoch of this start.

    Raises:
        CallerError: the file cannot be read or written.
    """
    names = (*kind,) if instance is None else (*kind, instance)
    path = folder / (",".join(quote(name, safe="") for name in names) + ".json")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _lock(path.with_suffix(".lock")):
            kept, epoch = _read(path, otherwise)
            instance = instance or kept or str(uuid4())
            epoch = epoch % EPOCH_MAX + 1
            content = json.dumps({"instance": instance, "epoch": epoch}).encode()
            replace_file(path, content, mode=PRIVATE, sync=True)
    except OSError as error:
        raise CallerError(f"cannot count the start of the agent in {path}: {error.strerror}") from error
    return instance, epoch


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file. The file stays: if it were removed, two processes could lock two files of one name."""
    with path.open("a") as file:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _read(path: Path, otherwise: int) -> tuple[str | None, int]:
    """Instance and epoch of the last start, or None and 0."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        instance, epoch = state["instance"], state["epoch"]
        if isinstance(instance, str) and instance and type(epoch) is int and 0 <= epoch <= EPOCH_MAX:
            return instance, epoch
    except FileNotFoundError:
        return None, 0
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    _log.warning("%s is damaged; counting starts from the time", path)
    return None, otherwise
