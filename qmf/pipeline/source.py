"""The Spark data source `qmf`: a bus or a lake as rows of a class.

- ``spark.read.format("qmf")`` with `url`, `package`, `class`: a live snapshot, asked of the agents when it runs;
- ``spark.readStream.format("qmf")`` with `lake`, `package`, `class`: what was and will be recorded there;
- the same with `url` and `spool` besides: records the bus into the spool, a lake, while the query runs, and follows it.

A stream's offset is a number of the lake's log. Files don't change once they are in the log, and joined files are
no news, so a restarted query reads exactly what it has not committed. Other options: `kind` (heartbeats, agents,
gaps, ... instead of a class), `hash` (one version of the class), `files` (most files in one batch), `domain`,
`timeout` (seconds, of the snapshot), `interval` (seconds, of the spool's commits).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from qmf.console.aio import BusConnected, Client, Notification, RemoteObject
from qmf.errors import NotFoundError
from qmf.pipeline.arrow import arrow_schema, arrow_table, columns_of, library
from qmf.pipeline.buffers import Converters
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import Columns, RowKind
from qmf.pipeline.lake import Lake
from qmf.pipeline.layout import Place
from qmf.pipeline.members import Table, table_of
from qmf.pipeline.recorder import Recorder
from qmf.pipeline.spark import local, schema_of, tables, versions
from qmf.schema import ClassKey

#: Files that one batch of a stream reads at most: what bounds its memory.
DEFAULT_FILES = 1000

#: Seconds between commits of a spool.
SPOOL_INTERVAL = 1.0

#: Name that a spool's recorder writes under.
SPOOLER = "spool"


class QmfDataSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "qmf"

    def schema(self) -> T.StructType:
        """The columns of the class, as known by the lake or the bus now; later versions' new ones join at a restart."""
        kind, of = self._what()
        return schema_of(kind, of)

    def reader(self, schema: T.StructType) -> DataSourceReader:  # noqa: ARG002
        """A live snapshot of the bus."""
        if not self.options.get("url"):
            raise PipelineError('a snapshot needs the option "url"; a lake is read with qmf.pipeline.spark.read')
        return SnapshotReader(dict(self.options))

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:
        """A stream over a lake, or over a bus by its spool."""
        kind, of = self._what()
        each: list[Table | None] = [*of] or [None]
        columns = tuple((name, cell) for table in each for name, cell in columns_of(kind, table))
        names = schema.fieldNames()
        unique: Columns = tuple((name, cell) for name, cell in dict(columns).items() if name in names)
        folders = [Place(kind, item.package, item.name, item.hash, "").folder for item in of] or [kind.value]
        return LakeStreamReader(dict(self.options), unique, folders)

    def _what(self) -> tuple[RowKind, list[Table]]:
        options = self.options
        name = options.get("class")
        if not name:
            kind = RowKind(options.get("kind", ""))
            if kind in (RowKind.OBJECTS, RowKind.EVENTS):
                raise PipelineError(f'{kind.value} need the option "class"')
            return kind, []
        lake = options.get("lake") or (options.get("spool") if not options.get("url") else None)
        if lake:
            of = versions(tables(lake), options.get("package"), name, options.get("hash"))
        else:
            of = [asyncio.run(_ask_schema(dict(options)))]
        return (RowKind.EVENTS if of[0].event else RowKind.OBJECTS), of


async def _ask_schema(options: dict[str, str]) -> Table:
    async with Client(options["url"], domain=options.get("domain", "default"), timeout=_timeout(options)) as client:
        return (await _class_of(client, options))[1]


async def _class_of(client: Client, options: dict[str, str]) -> tuple[ClassKey, Table]:
    """The class that the options name, at the agents present; of several versions, the last one listed."""
    name, package, hash = options["class"], options.get("package"), options.get("hash")
    keys = [
        key
        for key in await client.classes(package)
        if key.name.lower() == name.lower() and hash in (None, str(key.hash))
    ]
    if not keys:
        raise NotFoundError("class", name, [key.name for key in await client.classes(package)])
    if len({key.package for key in keys}) > 1:
        raise PipelineError(f"several packages have {name!r}: choose one with the option package")
    return keys[-1], table_of(await client.schema(keys[-1]))


def _timeout(options: dict[str, str]) -> float:
    return float(options.get("timeout", "10"))


class SnapshotReader(DataSourceReader):
    """Asks the agents for all objects of a class, once, in one task."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002
        """The objects as one Arrow batch; agents that don't answer fail the query rather than being left out."""
        made = asyncio.run(self._ask())
        yield from made.to_batches()

    async def _ask(self) -> Any:
        options = self._options
        async with Client(options["url"], domain=options.get("domain", "default"), timeout=_timeout(options)) as client:
            key, table = await _class_of(client, options)
            columns = columns_of(RowKind.OBJECTS, table)
            answers = await client.objects(class_key=key)
            if answers.failures:
                agent, error = next(iter(answers.failures.items()))
                raise PipelineError(f"{agent}: {error}")
            epochs = {agent.name: agent.epoch for agent in client.agents}
        converters = Converters(table)
        now = time.time_ns()
        rows = [_row(seq, obj, converters, epochs, now) for seq, obj in enumerate(answers, 1)]
        return arrow_table(columns, rows) if rows else arrow_schema(columns).empty_table()


def _row(seq: int, obj: RemoteObject, converters: Converters, epochs: dict[str, int], now: int) -> tuple[object, ...]:
    stamps = obj.timestamps
    time_ns = stamps.update or now
    values = {**obj.properties, **obj.statistics}
    return (
        *("snapshot", seq, time_ns // 1000, time_ns, now, obj.agent, epochs.get(obj.agent)),
        *(obj.object_id.object_name, obj.object_id.agent_epoch, stamps.create, stamps.delete, True, True),
        *converters.cells(values, statistics=True),
    )


class _Files(InputPartition):
    """Files that one task reads."""

    def __init__(self, paths: list[str]) -> None:
        super().__init__(paths)
        self.paths = paths


class LakeStreamReader(DataSourceStreamReader):
    """Follows the log of a lake. Runs in a process of its own beside the driver; `read` in the executors."""

    def __init__(self, options: dict[str, str], columns: Columns, folders: list[str]) -> None:
        self._options = options
        self._root = str(local(options.get("spool") or options["lake"]))
        self._columns = columns
        self._folders = tuple(f"{folder}/" for folder in folders)
        self._limit = int(options.get("files", DEFAULT_FILES))
        self._planned = 0
        self._spool: Spool | None = None

    def initialOffset(self) -> dict[str, int]:
        """The beginning of the lake."""
        return {"entry": 0}

    def latestOffset(
        self,
        start: dict[str, int] | None = None,
        limit: object = None,  # noqa: ARG002 - ours is the option `files`
    ) -> dict[str, int]:
        """As far as one batch may go. Sparks before 4.2 don't say from where it starts."""
        if start is not None:
            self._planned = start["entry"]
        if self._options.get("url") and self._spool is None:
            self._spool = Spool(self._options["url"], self._root, self._options)
        lake, files, number = Lake(self._root), 0, self._planned
        for entry in lake.entries(self._planned):
            files += len(entry.added)
            if files > self._limit and number > self._planned:
                break
            number = entry.number
        return {"entry": number}

    def partitions(self, start: dict[str, int], end: dict[str, int]) -> list[InputPartition]:
        """The files that came in between, one task each."""
        self._planned = max(self._planned, end["entry"])
        return [
            _Files([path])
            for entry in Lake(self._root).entries(start["entry"], end["entry"])
            if not entry.moved
            for path in entry.added
            if path.startswith(self._folders)
        ]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of some files, with nulls where a file's version has no such column."""
        assert isinstance(partition, _Files)
        lake = Lake(self._root)
        wanted = arrow_schema(self._columns)
        pa = library()
        for path in partition.paths:
            file = pa.parquet.ParquetFile(lake.find(path))
            present = set(file.schema_arrow.names)
            for batch in file.iter_batches(columns=[name for name in wanted.names if name in present]):
                columns = [
                    batch.column(field.name) if field.name in present else pa.nulls(batch.num_rows, field.type)
                    for field in wanted
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=wanted)

    def commit(self, end: dict[str, int]) -> None:
        """Nothing is let go of: the lake's retention does that."""
        self._planned = max(self._planned, end["entry"])

    def stop(self) -> None:
        """End the spool."""
        if self._spool is not None:
            self._spool.close()


class Spool:
    """A recorder in a background thread."""

    def __init__(self, url: str, root: str, options: dict[str, str]) -> None:
        """Connect and record.

        Raises:
            ConnectError, LakeError: as of `Recorder.run`.
        """
        self._ready: Future[None] = Future()
        self._loop = asyncio.new_event_loop()
        client = Client(url, domain=options.get("domain", "default"), discover=True)
        interval = float(options.get("interval", SPOOL_INTERVAL))
        client.listen(self._hear)
        self._recorder = Recorder(client, Lake(root), name=SPOOLER, interval=interval)
        self._thread = threading.Thread(target=self._main, name="qmf-spool", daemon=True)
        self._thread.start()
        self._ready.result()

    def close(self) -> None:
        """Commit what waits, and end."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._recorder.stop)
            self._thread.join()

    def _hear(self, news: Notification) -> None:
        if isinstance(news, BusConnected) and not self._ready.done():
            self._ready.set_result(None)

    def _main(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - told to whoever waits for the start
            if not self._ready.done():
                self._ready.set_exception(error)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._recorder.run())
        finally:
            self._loop.close()
