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

from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import columns_of
from qmf.pipeline.lake.classes import versions_of
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.layout import class_folder
from qmf.pipeline.lake.location import local_path
from qmf.pipeline.lake.row_columns import CLASS_KINDS
from qmf.pipeline.spark import catalog
from qmf.pipeline.spark.lake_stream import DEFAULT_FILES, LakeStreamReader


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
        from qmf.pipeline.spark.bus_snapshot import SnapshotReader

        return SnapshotReader(dict(self.options))

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:
        """A reader of a lake, or of a bus by its spool."""
        kind, versions = self._selected()
        options = dict(self.options)
        root = str(local_path(options.get("spool") or options["lake"]))
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
            versions = versions_of(known_versions, options.get("package"), name, options.get("hash"))
        else:
            from qmf.pipeline.spark.bus_snapshot import request_version

            versions = [request_version(dict(options))]
        return (RowKind.EVENTS if versions[0].event else RowKind.OBJECTS), versions
