"""A snapshot of a bus: all objects of a class, requested from the agents as a query of Spark is run.

Only such queries import this module: Spark starts Python for each stream, which would load the console otherwise.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import attrs
from pyspark.sql.datasource import DataSourceReader, InputPartition

from qmf.console.aio import Client, RemoteObject
from qmf.errors import NotFoundError
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, arrow_table, columns_of
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.record.buffers import Cells, RowConverter
from qmf.schema import ClassKey


def _client(options: dict[str, str]) -> Client:
    return Client(options["url"], domain=options.get("domain", "default"), timeout=float(options.get("timeout", "10")))


def request_version(options: dict[str, str]) -> ClassVersion:
    """The version of the class that the options name, from the agents present; of several, the last one listed."""

    async def request() -> ClassVersion:
        async with _client(options) as client:
            return (await _find_class(client, options))[1]

    return asyncio.run(request())


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
