"""The columns that the user chose for classes: kept in a file of the user's state, so that they last."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import attrs

from qmf._atomic_files import replace_file
from qmf.errors import CallerError
from qmf_shell.session.backend import ClassName


class ColumnMemoryError(CallerError):
    """The file with the chosen columns cannot be read or written."""


@attrs.define
class ColumnMemory:
    """The columns chosen for classes.

    Attributes:
        path: the file that keeps them; None: they last until the end of the session.
        chosen: names of values by class.
    """

    path: Path | None = None
    chosen: dict[ClassName, tuple[str, ...]] = attrs.field(factory=dict)

    def names(self, name: ClassName) -> tuple[str, ...]:
        """The columns of a class; empty if the user chose none."""
        return self.chosen.get(name, ())

    def choose(self, name: ClassName, columns: tuple[str, ...]) -> None:
        """Remember the columns of a class; none of them: it gets the default ones again.

        Raises:
            ColumnMemoryError: the file cannot be written; the choice lasts until the end of the session.
        """
        if columns:
            self.chosen[name] = columns
        else:
            self.chosen.pop(name, None)
        if self.path is None:
            return
        data = {":".join(key): list(names) for key, names in sorted(self.chosen.items())}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(self.path, f"{json.dumps(data, indent=1)}\n".encode())
        except OSError as error:
            reason = error.strerror or error
            raise ColumnMemoryError(f"the columns are not kept beyond this session: {self.path}: {reason}") from None


def read_columns(path: Path | None) -> ColumnMemory:
    """The columns kept in a file; none if it does not exist.

    Raises:
        ColumnMemoryError: it cannot be read, or is not what `ColumnMemory.choose` writes.
    """
    memory = ColumnMemory(path)
    if path is None:
        return memory
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return memory
    except OSError as error:
        raise ColumnMemoryError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ColumnMemoryError(f"{path} is not valid and is ignored: {error}") from None
    if not isinstance(data, Mapping):
        raise ColumnMemoryError(f"{path} is not valid and is ignored: it holds no map")
    for text, names in data.items():
        package, colon, name = text.rpartition(":")
        if colon and isinstance(names, list) and names and all(isinstance(item, str) for item in names):
            memory.chosen[package, name] = tuple(names)
    return memory
