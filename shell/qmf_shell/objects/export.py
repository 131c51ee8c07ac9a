"""Writes objects to a file, one row or record each: CSV, JSON, YAML or Parquet.

The text formats have the records that all commands print, see `object_records`; Parquet has the values of the wire,
with their types.
"""

from __future__ import annotations

import csv
import importlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Protocol
from uuid import UUID

from qmf._atomic_files import replaced_file
from qmf._extras import install_hint
from qmf.errors import CallerError
from qmf.schema import ClassSchema
from qmf.views.cells import Record
from qmf.views.fields import fields_of
from qmf.views.objects import ObjectKey, ObjectView
from qmf_shell.objects.columns import ALL_COLUMNS, value_columns
from qmf_shell.objects.fields import find_field
from qmf_shell.objects.object_records import COMMON_NAMES, file_record, value_name
from qmf_shell.objects.selecting import SelectedObjects
from qmf_shell.render.csv_lines import csv_text, flat_record
from qmf_shell.render.json_lines import plain_tree, record_value
from qmf_shell.session.context import Context

Row = Mapping[str, object]


class ExportError(CallerError):
    """A file cannot be written, or a library for it is not installed."""


def write_file(context: Context, path: Path, selected: Sequence[SelectedObjects], columns: Sequence[str] = ()) -> int:
    """Write objects to a file, completely or not at all.

    Args:
        path: its suffix determines the format.
        columns: the fields to write; empty means all.

    Returns:
        how many objects were written.

    Raises:
        ExportError: the file cannot be written, or a library for the format is not installed.
        NotFoundError: a class has no such field.
    """
    objects = [item for one in selected for item in one.shown]
    schemas = [schema for one in selected for schema in one.schemas]
    chosen = None if not columns or any(name.lower() in ALL_COLUMNS for name in columns) else columns
    write: Callable[[IO[bytes]], None]
    if path.suffix.lower() == ".parquet":
        _library("pyarrow.parquet", "Parquet", "pyarrow", "parquet")
        rows = [_row(item) for item in objects]
        names = _names(schemas, rows, chosen)
        write = partial(_write_parquet, names=names, rows=rows)
    else:
        values = None if chosen is None else value_columns(schemas, chosen)
        records = [file_record(context, item, values) for item in objects]
        write = partial(_text_writer(path.suffix.lower(), schemas, chosen), records=records)
    try:
        with replaced_file(path) as file:
            write(file)
    except OSError as error:
        raise ExportError(f"cannot write {path}: {error.strerror or error}") from None
    return len(objects)


# -- text: the records of all commands ---------------------------------------------------------------------------------


class _WriteRecords(Protocol):
    def __call__(self, file: IO[bytes], *, records: Sequence[Record]) -> None: ...


def _text_writer(suffix: str, schemas: Sequence[ClassSchema], chosen: Sequence[str] | None) -> _WriteRecords:
    match suffix:
        case ".csv":
            fields = [] if chosen is not None else [value_name(name) for name in fields_of(*schemas)]
            return partial(_write_csv, names=[*COMMON_NAMES[1:], *fields])
        case ".json":
            return _write_json
        case ".jsonl":
            return _write_json_lines
        case _:
            _library("yaml", "YAML", "PyYAML", "shell")
            return _write_yaml


def _write_csv(file: IO[bytes], names: Sequence[str], records: Sequence[Record]) -> None:
    rows = [flat_record(record) for record in records]
    names = list(dict.fromkeys([*names, *(name for row in rows for name in row)]))
    lines = csv.writer(_TextFile(file), lineterminator="\n")
    lines.writerow(names)
    lines.writerows([csv_text(row.get(name)) for name in names] for row in rows)


def _write_json(file: IO[bytes], records: Sequence[Record]) -> None:
    lines = [f"\n {json.dumps(record_value(record), default=str, allow_nan=False)}" for record in records]
    file.write(f"[{','.join(lines)}\n]\n".encode())


def _write_json_lines(file: IO[bytes], records: Sequence[Record]) -> None:
    for record in records:
        file.write(f"{json.dumps(record_value(record), default=str, allow_nan=False)}\n".encode())


def _write_yaml(file: IO[bytes], records: Sequence[Record]) -> None:
    from qmf_shell.render.json_lines import yaml_document

    for record in records:
        file.writelines(f"{line}\n".encode() for line in yaml_document(record_value(record)))


class _TextFile:
    """A text file over a binary one, as `csv` needs it; bytes that were not UTF-8 are written unchanged."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file

    def write(self, text: str) -> int:
        """Write a text."""
        return self._file.write(text.encode(errors="surrogateescape"))


# -- Parquet: values as on the wire ------------------------------------------------------------------------------------


def _row(item: ObjectView) -> dict[str, object]:
    identity = item.identity
    front = (
        identity.class_key.package,
        identity.class_key.name,
        identity.key.agent_name,
        identity.key.broker or item.broker,
        identity.key.object_name,
        identity.index,
        item.created,
        item.updated,
    )
    return dict(zip(COMMON_NAMES[1:], front, strict=True)) | {
        value_name(name): value.object_name if isinstance(value, ObjectKey) else value
        for name, value in item.values.items()
    }


def _names(schemas: Sequence[ClassSchema], rows: Sequence[Row], chosen: Sequence[str] | None) -> list[str]:
    front = COMMON_NAMES[1:]
    if chosen is not None:
        return [*front, *dict.fromkeys(value_name(find_field(schemas, name).name) for name in chosen)]
    fields = (value_name(name) for name in fields_of(*schemas))
    return list(dict.fromkeys((*front, *fields, *(name for row in rows for name in row))))


def _library(module: str, format: str, name: str, extra: str) -> None:
    try:
        importlib.import_module(module.partition(".")[0])
        importlib.import_module(module)
    except ImportError:
        message = f"{format} needs {name}, which is not installed: {install_hint(extra)}"
        raise ExportError(message) from None


def _write_parquet(file: IO[bytes], names: Sequence[str], rows: Sequence[Row]) -> None:
    arrow = importlib.import_module("pyarrow")
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
