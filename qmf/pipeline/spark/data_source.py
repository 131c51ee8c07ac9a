"""The Spark data source `qmf`: a bus or a lake as rows of a class.

- ``spark.read.format("qmf")`` with `url`, `package`, `class`: a live snapshot, asked of the agents when it runs;
- ``spark.readStream.format("qmf")`` with `lake`, `package`, `class`: what was and will be recorded there;
- the same with `url` and `spool` besides: records the bus into the spool, a lake, while the query runs, and follows it.

Other options: `kind` instead of a class (heartbeats, agents, gaps, ...; objects and events are then those of all
classes, their values as JSON), `hash` (one version of the class), `files` (most files in one batch), `domain`,
`timeout` (seconds, of the snapshot), `interval` (seconds, of the spool's commits).
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
from qmf.pipeline.lake.columns import Table, table_of
from qmf.pipeline.lake.layout import class_folder
from qmf.pipeline.recording.buffers import Converters
from qmf.pipeline.spark.catalog import any_schema, columns_like, local, schema_of, tables, versions
from qmf.pipeline.spark.lake_stream import DEFAULT_FILES, LakeStreamReader
from qmf.schema import ClassKey

_CLASSED = (RowKind.OBJECTS, RowKind.EVENTS)


class QmfDataSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "qmf"

    def schema(self) -> T.StructType:
        """The columns of the class, as known by the lake or the bus now; later versions' new ones join at a restart."""
        kind, of = self._what()
        return any_schema(kind) if kind in _CLASSED and not of else schema_of(kind, of)

    def reader(self, schema: T.StructType) -> DataSourceReader:  # noqa: ARG002
        """A live snapshot of the bus."""
        if not self.options.get("url"):
            raise PipelineError('a snapshot needs the option "url"; a lake is read with qmf.pipeline.frames')
        return SnapshotReader(dict(self.options))

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:
        """A stream over a lake, or over a bus by its spool."""
        kind, of = self._what()
        options = dict(self.options)
        root = str(local(options.get("spool") or options["lake"]))
        spooled = (options["url"], options) if options.get("url") else None
        as_json = kind in _CLASSED and not of
        return LakeStreamReader(
            root,
            # By the schema that the query was planned with: another version may have come since.
            columns=columns_of(kind, None) if as_json else columns_like(schema),
            folder=class_folder(kind, of[0].package, of[0].name, options.get("hash", "")) if of else class_folder(kind),
            as_json=as_json,
            limit=int(options.get("files", DEFAULT_FILES)),
            spooled=spooled,
        )

    def _what(self) -> tuple[RowKind, list[Table]]:
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
    key = keys[-1]
    # Named as the wire names it: so the lake does.
    table = attrs.evolve(table_of(await client.schema(key)), package=key.package, name=key.name)
    return key, table


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
