"""Taking over a lake of earlier versions: folders of Parquet files with a log of their own.

::

    LAKE/objects/qmf_package=P/qmf_class=C/qmf_hash=H/qmf_date=2030-01-31/NAME-RUN-NUMBER.parquet
    LAKE/heartbeats/qmf_date=.../...   and the other kinds
    LAKE/_log/00000000000000000042.json              files added and removed
    LAKE/_log/00000000000000001000.checkpoint.json   all files after that entry
    LAKE/_trash, LAKE/_lock_NAME

The rows go to the tables in batches, each committed once, so that a conversion may be killed and started again. Then
old and new rows are compared run by run, and only then are the old files removed; their log is the last of them.
"""

from __future__ import annotations

import fcntl
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import attrs

from qmf.pipeline.errors import LakeError, lake_errors
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, columns_of, import_pyarrow, with_text
from qmf.pipeline.lake.columns import ClassVersion, aligned, named
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.delta_lake import OLD_LOG, DeltaLake, RecordedClass, place
from qmf.pipeline.lake.row_columns import CLASS_KINDS, DATE, HASH, Columns
from qmf.pipeline.lake.table_paths import JOB_TABLES, class_path, kind_path

#: Where `keep` puts what it does not delete.
KEPT = "_before_conversion"

#: The writer's name of a conversion.
WRITER = "convert"

#: Rows of a batch, about.
BATCH_ROWS = 250_000

_ENTRY = re.compile(r"(\d{20})(\.checkpoint)?\.json")
_FOLDER = re.compile(r"qmf_(package|class|hash|date)=(.*)")
_VERIFIED = "verified"
_SCHEMAS = kind_path(RowKind.SCHEMAS)

#: By run: number of rows, sum of their numbers, and a sum of values that differ where the numbers do.
Fingerprints = Mapping[str, tuple[int, int, int]]


@attrs.frozen
class ConversionCounts:
    """What a conversion did.

    Attributes:
        files, rows: of the old lake.
        runs: of its recorders.
        tables: that have the rows now.
    """

    files: int = 0
    rows: int = 0
    runs: int = 0
    tables: int = 0


@attrs.frozen
class _OldFile:
    path: Path
    kind: RowKind
    key: tuple[str, str, str]
    date: str


def convert(root: Path, lake: DeltaLake, *, keep: bool = False) -> ConversionCounts:
    """Take over an old lake.

    Args:
        root: its folder.
        lake: where its rows go: the same folder, or another lake without any.
        keep: old files are not deleted: those of the same folder are moved to `KEPT`.

    Raises:
        LakeError: it is no old lake, a recorder of an earlier version runs, a file is damaged, or what was written is
            not what was read; the old files are as before then.
    """
    log = root / OLD_LOG
    if not log.is_dir():
        raise LakeError(f"{root}: not a lake of an earlier version: it has no folder {OLD_LOG}")
    same = lake.is_local and Path(lake.url) == root.absolute()
    with _locked(root):
        files = _old_files(root)
        counts = ConversionCounts(len(files))
        if not (log / _VERIFIED).exists():
            places = _write_schemas(lake, [file for file in files if file.kind is RowKind.SCHEMAS])
            paths = _write_rows(lake, [file for file in files if file.kind is not RowKind.SCHEMAS], places)
            before = _fingerprints(_numbers_of_files(files))
            after = _fingerprints(_numbers_of_tables(lake, {*paths, _SCHEMAS} if files else ()))
            _compare(before, after, lake)
            counts = attrs.evolve(
                counts,
                rows=sum(count for count, *_sums in before.values()),
                runs=len(before),
                tables=len({*paths, _SCHEMAS}),
            )
            if same:
                with lake_errors(log):
                    (log / _VERIFIED).touch()
        if same:
            _clear(root, keep=keep)
        elif not keep:
            shutil.rmtree(root)
    if files or same:
        lake.create()
    return counts


# -- the old lake


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Hold the names of all old recorders."""
    with ExitStack() as stack:
        for path in sorted(root.glob("_lock_*")):
            with lake_errors(path):
                file = stack.enter_context(path.open("a", encoding="utf-8"))
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise LakeError(f"{path}: a recorder of an earlier version is running; end it first") from None
        yield


def _old_files(root: Path) -> list[_OldFile]:
    """The files with the rows of an old lake, in a fixed order."""
    present, mentioned = _logged(root / OLD_LOG)
    found = {path for path in present if (root / path).exists()}
    missing = sorted(present - found)
    if missing and not (root / OLD_LOG / _VERIFIED).exists():
        raise LakeError(f"{root / missing[0]}: the log has it, and it is missing; {len(missing)} such files")
    for kind in RowKind:
        # Those that a recorder wrote before it was killed, and did not enter.
        for path in (root / kind.value).glob("qmf_*/**/*.parquet"):
            inside = path.relative_to(root).as_posix()
            if inside not in mentioned and not path.name.startswith((".", "upkeep-")):
                found.add(inside)
    return [_parse(root, path) for path in sorted(found)]


def _logged(log: Path) -> tuple[set[str], set[str]]:
    """The files that a log has, and all that it mentions."""
    entries: dict[int, Path] = {}
    checkpoints: dict[int, Path] = {}
    for path in log.iterdir():
        match = _ENTRY.fullmatch(path.name)
        if match:
            (checkpoints if match[2] else entries)[int(match[1])] = path
    start = max(checkpoints, default=0)
    present = set(_json(checkpoints[start])) if start else set()
    mentioned = set(present)
    for number, path in sorted(entries.items()):
        entry = _json(path)
        try:
            added, removed = set(entry["added"]), set(entry["removed"])
        except (KeyError, TypeError):
            raise LakeError(f"{path}: damaged: not an entry of a log") from None
        mentioned |= added | removed
        if number > start:
            present = (present | added) - removed
    return present, mentioned


def _json(path: Path) -> Any:
    with lake_errors(path):
        text = path.read_text(encoding="utf-8")
    try:
        return json.loads(text)
    except ValueError as error:
        raise LakeError(f"{path}: damaged: {error}") from None


def _parse(root: Path, inside: str) -> _OldFile:
    parts = inside.split("/")
    values = {match[1]: unquote(match[2]) for part in parts if (match := _FOLDER.fullmatch(part))}
    hash = values.get("hash", "")
    key = (values.get("package", ""), values.get("class", ""), "" if hash == "none" else hash)
    return _OldFile(root / inside, RowKind(parts[0]), key, values.get("date", "1970-01-01"))


def _read(path: Path, columns: Sequence[str] | None = None) -> Any:
    with delta_errors(str(path)):
        return import_pyarrow().parquet.ParquetFile(path).read(columns)


# -- writing


def _write_schemas(
    lake: DeltaLake, files: Sequence[_OldFile]
) -> dict[tuple[str, ...], tuple[RecordedClass, dict[str, str]]]:
    """Write the schemas, each with the table of its class.

    Returns:
        by package, class and hash: the class in the new lake, and the new names of columns by the old ones.
    """
    pa = import_pyarrow()
    parts = [with_text(_read(file.path), DATE, file.date) for file in files]
    known: dict[tuple[str, ...], tuple[RecordedClass, dict[str, str]]] = {}
    if not parts:
        return known
    rows = pa.concat_tables(parts, promote_options="default").sort_by([("_run", "ascending"), ("_seq", "ascending")])
    columns, tables = [], []
    for row in rows.to_pylist():
        key = (row["package"], row["class"], row["hash"])
        if key not in known:
            old = ClassVersion.from_json(*key, row["event"], row["columns"])
            recorded = [item for item, _names in known.values()]
            new = attrs.evolve(old, columns=named(old.columns))
            new = aligned(new, (item.version for item in recorded))
            kind = RowKind.EVENTS if new.event else RowKind.OBJECTS
            path = place(new, recorded, class_path(kind, new.package, new.name))
            names = {one.name: two.name for one, two in zip(old.columns, new.columns, strict=True)}
            known[key] = (RecordedClass(new, path), names)
        item = known[key][0]
        columns.append(item.version.to_json())
        tables.append(item.table)
    rows = with_text(rows.drop_columns(["columns"]), "columns", columns)
    lake.table(_SCHEMAS).append(with_text(rows, "table", tables), writer=WRITER, batch=1, partition_by=())
    return known


def _write_rows(
    lake: DeltaLake,
    files: Sequence[_OldFile],
    places: Mapping[tuple[str, ...], tuple[RecordedClass, dict[str, str]]],
) -> list[str]:
    """Write the rows of files; returns the paths of their tables."""
    by_table: dict[str, list[_OldFile]] = defaultdict(list)
    for file in files:
        if file.kind in CLASS_KINDS:
            if file.key not in places:
                raise LakeError(f"{file.path}: no schema of its class in {_SCHEMAS}")
            by_table[places[file.key][0].table].append(file)
        else:
            by_table[kind_path(file.kind)].append(file)

    def read(file: _OldFile) -> Any:
        rows = _with_columns(_read(file.path), columns_of(file.kind, None))
        rows = with_text(rows, DATE, file.date)
        if file.kind not in CLASS_KINDS:
            return rows
        names = places[file.key][1]
        rows = rows.rename_columns([names.get(name, name) for name in rows.column_names])
        return with_text(rows, HASH, file.key[2])

    for path, own in sorted(by_table.items()):
        _write_table(lake, path, sorted(own, key=lambda file: (file.date, file.path)), read)
    return sorted(by_table)


def _with_columns(rows: Any, columns: Columns) -> Any:
    """Rows with columns that earlier versions did not have, as nulls: readers find the same columns in all files."""
    for field in arrow_schema(columns):
        if field.name not in rows.column_names:
            rows = rows.append_column(field, import_pyarrow().nulls(rows.num_rows, field.type))
    return rows


def _write_table(lake: DeltaLake, path: str, files: Sequence[_OldFile], read: Callable[[_OldFile], Any]) -> None:
    pa = import_pyarrow()
    table = lake.table(path)
    done = table.last_batch(WRITER) or 0
    for number, chunk in enumerate(_chunks(files), 1):
        if number > done:
            rows = pa.concat_tables([read(file) for file in chunk], promote_options="default")
            table.append(rows, writer=WRITER, batch=number)


def _chunks(files: Iterable[_OldFile]) -> Iterator[list[_OldFile]]:
    chunk: list[_OldFile] = []
    rows = 0
    for file in files:
        chunk.append(file)
        with delta_errors(str(file.path)):
            rows += import_pyarrow().parquet.read_metadata(file.path).num_rows
        if rows >= BATCH_ROWS:
            yield chunk
            chunk, rows = [], 0
    if chunk:
        yield chunk


# -- comparing


def _numbers_of_files(files: Iterable[_OldFile]) -> Iterator[Any]:
    for file in files:
        yield _read(file.path, ["_run", "_seq"])


def _numbers_of_tables(lake: DeltaLake, paths: Iterable[str]) -> Iterator[Any]:
    pa = import_pyarrow()
    for path in sorted(paths):
        table = lake.table(path)
        with delta_errors(table.url):
            for batch in table.dataset(table.snapshot().files).to_batches(columns=["_run", "_seq"]):
                yield pa.Table.from_batches([batch])


def _fingerprints(parts: Iterable[Any]) -> Fingerprints:
    import_pyarrow()
    from pyarrow import compute

    found: dict[str, tuple[int, int, int]] = {}
    for part in parts:
        # The product wraps; what is kept of it is small enough to be added up.
        mixed = compute.bit_wise_and(compute.multiply(part["_seq"], 0x5851F42D4C957F2D), 0x7FFFFFFF)
        grouped = part.append_column("mixed", mixed).group_by("_run")
        for row in grouped.aggregate([("_seq", "count"), ("_seq", "sum"), ("mixed", "sum")]).to_pylist():
            before = found.get(row["_run"], (0, 0, 0))
            sums = (row["_seq_count"], row["_seq_sum"], row["mixed_sum"])
            found[row["_run"]] = (before[0] + sums[0], before[1] + sums[1], before[2] + sums[2])
    return found


def _compare(before: Fingerprints, after: Fingerprints, lake: DeltaLake) -> None:
    for run in sorted({*before, *after}):
        old, new = before.get(run, (0, 0, 0)), after.get(run, (0, 0, 0))
        if old != new:
            raise LakeError(
                f"{lake.url}: of the run {run} the old lake has {old[0]} rows and the new one {new[0]}, or others; "
                "the old files are kept"
            )


# -- removing


def _clear(root: Path, *, keep: bool) -> None:
    """Remove what is old, the log last: while it is there, the conversion is known as not finished."""
    kept = root / KEPT
    own = [path for kind in RowKind for path in sorted((root / kind.value).glob("qmf_*"))]
    # What jobs wrote in their old formats would be in the way of their tables.
    jobs = [path for path in [root / JOB_TABLES] if path.is_dir() and not any(path.rglob("_delta_log"))]
    with lake_errors(root):
        for path in [*own, root / "_trash", root / OLD_LOG]:
            if not path.exists():
                continue
            if path.name == OLD_LOG:
                for job in jobs:
                    _move(root, job, kept)
            if keep:
                _move(root, path, kept)
            else:
                shutil.rmtree(path)
        for path in root.glob("_lock_*"):
            path.unlink()


def _move(root: Path, path: Path, kept: Path) -> None:
    target = kept / path.relative_to(root)
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)
