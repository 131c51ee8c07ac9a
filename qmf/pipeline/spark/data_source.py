"""The Spark data source `qmf`: a bus or a lake as rows of a class.

- ``spark.read.format("qmf")`` with `url`, `package`, `class`: a live snapshot, requested from the agents when it runs;
- ``spark.readStream.format("qmf")`` with `lake`, `package`, `class`: all rows that are or will be recorded there;
- the same with `url` and `spool` in addition: records the bus into the spool, a lake, while the query runs, and follows
  it.

Other options: `kind` instead of a class (heartbeats, agents, gaps, ...; objects and events are then those of all
classes, with their values as JSON), `hash` (one version of the class), `files` (files of a micro-batch at most),
`domain`, `timeout` (seconds, of the snapshot), `interval` (seconds, of the spool's commits).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import attrs
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition

from qmf.console.aio import Client, RemoteObject
from qmf.errors import NotFoundError
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, arrow_table, columns_of
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.layout import class_folder
from qmf.pipeline.lake.row_columns import CLASS_KINDS
from qmf.pipeline.recording.buffers import Cells, RowConverter
from qmf.pipeline.spark import catalog
from qmf.pipeline.spark.lake_stream import DEFAULT_FILES, LakeStreamReader
from qmf.schema import ClassKey


class QmfDataSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "qmf"

    def schema(self) -> T.StructType:
        """The columns of the class, as the lake or the bus has them now; those of later versions join at a restart."""
        kind, versions = self._selected()
        if kind in CLASS_KINDS and not versions:
            return catalog.any_class_schema(kind)
        return catalog.kind_schema(kind, versions)

    def reader(self, schema: T.StructType) -> DataSourceReader:  # noqa: ARG002
        """A reader of a live snapshot of the bus."""
        if not self.options.get("url"):
            raise PipelineError('a snapshot needs the option "url"; a lake is read with qmf.pipeline.frames')
        return SnapshotReader(dict(self.options))

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:
        """A reader of a lake, or of a bus by its spool."""
        kind, versions = self._selected()
        options = dict(self.options)
        root = str(catalog.local_path(options.get("spool") or options["lake"]))
        folder = class_folder(kind)
        if versions:
            folder = class_folder(kind, versions[0].package, versions[0].name, options.get("hash", ""))
        as_json = kind in CLASS_KINDS and not versions
        return LakeStreamReader(
            root,
            # From the schema that the query was planned with: another version may have been added since.
            columns=columns_of(kind, None) if as_json else catalog.columns_from_schema(schema),
            folder=folder,
            as_json=as_json,
            limit=int(options.get("files", DEFAULT_FILES)),
            spooled=(options["url"], options) if options.get("url") else None,
        )

    def _selected(self) -> tuple[RowKind, list[ClassVersion]]:
        """The kind of rows, and the versions of their class where the options name one."""
        options = self.options
        name = options.get("class")
        if not name:
            kinds = [kind for kind in RowKind if kind.value == options.get("kind")]
            if not kinds:
                known = ", ".join(kind.value for kind in RowKind)
                raise PipelineError(f'the option "class" is missing, or "kind" with one of {known}')
            return kinds[0], []
        lake = options.get("lake") or (options.get("spool") if not options.get("url") else None)
        if lake:
            known_versions = catalog.class_versions(lake)
            versions = catalog.versions_of(known_versions, options.get("package"), name, options.get("hash"))
        else:
            versions = [asyncio.run(_request_version(dict(options)))]
        return (RowKind.EVENTS if versions[0].event else RowKind.OBJECTS), versions


def _client(options: dict[str, str]) -> Client:
    return Client(options["url"], domain=options.get("domain", "default"), timeout=float(options.get("timeout", "10")))


async def _request_version(options: dict[str, str]) -> ClassVersion:
    async with _client(options) as client:
        return (await _find_class(client, options))[1]


async def _find_class(client: Client, options: dict[str, str]) -> tuple[ClassKey, ClassVersion]:
    """The class that the options name, from the agents present; of several versions, the last one listed."""
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
    key = keys[-1]
    # With the names of the wire, as in a lake.
    version = attrs.evolve(ClassVersion.from_schema(await client.schema(key)), package=key.package, name=key.name)
    return key, version


class SnapshotReader(DataSourceReader):
    """Requests all objects of a class from the agents, once, in one task."""

    def __init__(self, options: dict[str, str]) -> None:
        self._options = options

    def read(self, partition: InputPartition) -> Iterator[Any]:  # noqa: ARG002
        """The objects as one Arrow batch. An agent that doesn't answer makes the query fail, rather than be missing."""
        table = asyncio.run(self._snapshot())
        yield from table.to_batches()

    async def _snapshot(self) -> Any:
        async with _client(self._options) as client:
            key, version = await _find_class(client, self._options)
            columns = columns_of(RowKind.OBJECTS, version)
            answers = await client.objects(class_key=key)
            if answers.failures:
                agent, error = next(iter(answers.failures.items()))
                raise PipelineError(f"{agent}: {error}")
            epochs = {agent.name: agent.epoch for agent in client.agents}
        converter = RowConverter(version)
        now = time.time_ns()
        rows = [_row(seq, obj, converter, epochs, now) for seq, obj in enumerate(answers, 1)]
        return arrow_table(columns, rows) if rows else arrow_schema(columns).empty_table()


def _row(seq: int, obj: RemoteObject, converter: RowConverter, epochs: dict[str, int], now: int) -> Cells:
    stamps = obj.timestamps
    time_ns = stamps.update or now
    values = {**obj.properties, **obj.statistics}
    return (
        *("snapshot", seq, time_ns // 1000, time_ns, now, obj.agent, epochs.get(obj.agent)),
        *(obj.object_id.object_name, obj.object_id.agent_epoch, stamps.create, stamps.delete, True, True),
        *converter.cells(values, statistics=True),
    )
