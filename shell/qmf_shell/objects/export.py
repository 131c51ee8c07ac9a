"""Writes objects to a file, one row each: CSV, JSON or Parquet. Values keep their wire names and units."""

from __future__ import annotations

import csv
import importlib
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any
from uuid import UUID

from qmf.errors import CallerError
from qmf_shell.objects.columns import ALL_COLUMNS
from qmf_shell.objects.fields import fields_of, find_field
from qmf_shell.objects.selecting import SelectedObjects
from qmf_shell.render.json_lines import plain_tree
from qmf_shell.session.backend import ObjectKey, ObjectRecord

#: The first columns of every row.
COMMON_COLUMNS = ("package", "class", "agent", "broker", "object", "index", "created", "updated")
Row = Mapping[str, object]


class ExportError(CallerError):
    """A file cannot be written, or a library for it is not installed."""


def write_file(path: Path, selected: Sequence[SelectedObjects], columns: Sequence[str] = ()) -> int:
    """Write objects to a file, completely or not at all.

    Args:
        path: its suffix determines the format.
        selected: the objects.
        columns: the fields to write; empty means all.

    Returns:
        how many objects were written.

    Raises:
        ExportError: the file cannot be written, or pyarrow is not installed.
        NotFoundError: a class has no such field.
    """
    rows = [_row(item) for one in selected for item in one.shown]
    names = _names(selected, rows, columns)
    writer: Callable[[IO[bytes], Sequence[str], Sequence[Row]], None]
    writer = {".csv": _write_csv, ".json": _write_json, ".parquet": _write_parquet}[path.suffix.lower()]
    if writer is _write_parquet:
        _require_pyarrow()
    part = ""
    try:
        with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as file:
            part = file.name
            writer(file, names, rows)
        umask = os.umask(0)
        os.umask(umask)
        Path(part).chmod(0o666 & ~umask)
        Path(part).replace(path)
    except OSError as error:
        if part:
            Path(part).unlink(missing_ok=True)
        raise ExportError(f"cannot write {path}: {error.strerror or error}") from None
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
    return len(rows)


def _row(item: ObjectRecord) -> dict[str, object]:
    identity = item.identity
    front = (
        identity.class_key.package,
        identity.class_key.name,
        identity.key.agent,
        identity.key.broker or item.broker,
        identity.key.name,
        identity.index,
        item.created,
        item.updated,
    )
    return dict(zip(COMMON_COLUMNS, front, strict=True)) | {
        _column(name): value.name if isinstance(value, ObjectKey) else value for name, value in item.values.items()
    }


def _column(name: str) -> str:
    """The column of a field; one with the name of a common column gets a ``_`` in front."""
    return f"_{name}" if name in COMMON_COLUMNS else name


def _names(selected: Sequence[SelectedObjects], rows: Sequence[Row], columns: Sequence[str]) -> list[str]:
    schemas = [schema for one in selected for schema in one.schemas]
    if columns and not any(name.lower() in ALL_COLUMNS for name in columns):
        return [*COMMON_COLUMNS, *dict.fromkeys(_column(find_field(schemas, name).name) for name in columns)]
    fields = (_column(name) for schema in schemas for name in fields_of(schema))
    return list(dict.fromkeys((*COMMON_COLUMNS, *fields, *(name for row in rows for name in row))))


def _write_csv(file: IO[bytes], names: Sequence[str], rows: Sequence[Row]) -> None:
    lines = csv.writer(_TextFile(file), lineterminator="\n")
    lines.writerow(names)
    lines.writerows([_csv_cell(row.get(name)) for name in names] for row in rows)


class _TextFile:
    """A text file over a binary one, as `csv` needs it; bytes that were not UTF-8 are written unchanged."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write a text."""
        return self._file.write(text.encode(errors="surrogateescape"))


def _csv_cell(value: object) -> object:
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Mapping() | list() | tuple():
            return json.dumps(plain_tree(value), default=str)
        case bytes() | bytearray():
            return bytes(value).hex()
        case _:
            return value


def _write_json(file: IO[bytes], names: Sequence[str], rows: Sequence[Row]) -> None:
    file.write(b"[")
    for number, row in enumerate(rows):
        values = {name: plain_tree(row[name]) for name in names if name in row}
        text = json.dumps(values, default=_json_value, allow_nan=False)
        file.write((",\n " if number else "\n ").encode() + text.encode())
    file.write(b"\n]\n")


def _json_value(value: object) -> object:
    return value.hex() if isinstance(value, bytes) else str(value)


def _require_pyarrow() -> Any:
    try:
        importlib.import_module("pyarrow.parquet")
        return importlib.import_module("pyarrow")
    except ImportError:
        raise ExportError("Parquet needs pyarrow, which is not installed: pip install 'qmf[parquet]'") from None


def _write_parquet(file: IO[bytes], names: Sequence[str], rows: Sequence[Row]) -> None:
    arrow = _require_pyarrow()
    columns = {
        name: arrow.array(
            [_parquet_cell(value) for value in values], type=arrow.uint64() if _is_large(values) else None
        )
        for name, values in _columns(names, rows)
    }
    arrow.parquet.write_table(arrow.table(columns), file)


def _columns(names: Sequence[str], rows: Sequence[Row]) -> Iterable[tuple[str, list[object]]]:
    for name in names:
        values = [row.get(name) for row in rows]
        kinds = {type(value) for value in values if value is not None}
        # A column has one type: if agents send different ones, it is text.
        if (len(kinds) > 1 and kinds != {int, float}) or (_is_large(values) and _is_negative(values)):
            values = [None if value is None else str(_parquet_cell(value)) for value in values]
        elif kinds == {int, float}:
            values = [None if value is None else float(value) for value in values]  # type: ignore[arg-type]
        yield name, values


def _is_large(values: Sequence[object]) -> bool:
    """True if an integer needs the range of uint64."""
    return any(isinstance(value, int) and value >= 2**63 for value in values)


def _is_negative(values: Sequence[object]) -> bool:
    return any(isinstance(value, int) and value < 0 for value in values)


def _parquet_cell(value: object) -> object:
    if isinstance(value, str):
        return value.encode(errors="backslashreplace").decode()
    if isinstance(value, Mapping | list | tuple):
        return json.dumps(plain_tree(value), default=str)
    return str(value) if isinstance(value, UUID) else value
