"""What is in a lake, and what the jobs make of it, as functions from frames to frames: for notebooks and for SQL.

::

    from qmf.pipeline.spark import samples, rollups, alerts, lives

    cpu = samples(spark, "lake", "cpu")
    rollups(cpu, ["1m", "1h"]).where("member = 'userTime'").show()

The rows are those of the jobs `rollup`, `correlate` and `audit` over the same rows. Nothing is written. The functions
work in a session of Spark Connect as well: then the server reads the lake, and has this package.

A frame knows its class: the metadata of its column `_ts_ns` do. It keeps them when rows are filtered and columns are
chosen or added. `samples` and `rows` can follow the lake as well; the functions of the jobs are for batches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.location import absolute
from qmf.pipeline.spark_access.data_source import recorded_class

if TYPE_CHECKING:
    from qmf.pipeline.correlate.rules import Rule


def samples(
    spark: SparkSession,
    lake: str,
    name: str,
    *,
    package: str | None = None,
    hash: str | None = None,
    first: str | None = None,
    last: str | None = None,
    columns: Sequence[str] = (),
    one_query: bool = False,
    stream: bool = False,
    storage: Mapping[str, str] | None = None,
) -> DataFrame:
    """The samples of a class, or the events of a class of events, all its versions together.

    Args:
        spark: to read with; its executors read the files.
        lake: path or URL.
        name: of the class, in upper or lower case.
        package: of the class; None for the only one that has it.
        hash: of one version; None for all.
        first, last: days, ``2030-01-31``, both included; None for no limit.
        columns: of the class that are read, besides those of every row; none for all. Spark's API for data sources in
            Python doesn't say which columns a query needs, so that all are read otherwise.
        one_query: there is one query of the frame alone, and its filters are applied where the files are read. Spark
            (4.3) keeps what such a query reads: a second one of the same frame without filters would get that.
        stream: a frame of Structured Streaming that follows the lake; days and `one_query` are for batches.
        storage: options of the lake's object store.

    Returns:
        a row for each message, with the columns of every row and those of the class.

    Raises:
        PySparkException: there is no such lake, class or column; versions disagree about a type.
    """
    chosen = {"class": name, "package": package, "hash": hash, "from": first, "to": last, "columns": ",".join(columns)}
    chosen["one_query"] = "true" if one_query else None
    return _read(spark, lake, chosen, storage, stream=stream)


def rows(
    spark: SparkSession,
    lake: str,
    kind: RowKind | str,
    *,
    stream: bool = False,
    storage: Mapping[str, str] | None = None,
) -> DataFrame:
    """The rows of a kind: heartbeats, agents, gaps, schemas, untyped; or the objects or the events of all classes.

    Args:
        spark, lake, stream, storage: as of `samples`.
        kind: of the rows.

    Returns:
        a row for each message; those of all classes have `package`, `class`, `hash`, and `values` as JSON.
    """
    return _read(spark, lake, {"kind": RowKind(kind).value}, storage, stream=stream)


def rollups(samples: DataFrame, sizes: Sequence[str] = ("1m",), *, continued: bool = False) -> DataFrame:
    """Windows of counters and gauges: the rows of the job `rollup`.

    Args:
        samples: of one class. All samples of an object are in the memory of one task at a time.
        sizes: of the windows, ``30s``, ``1m``, ``1h``, in UTC.
        continued: counters outlive restarts of their agents, as those do that an agent only forwards.

    Returns:
        the columns of the table of roll-ups; statistics whose columns the frame lacks are left out.

    Raises:
        PipelineError: the frame doesn't know its class, or not a size of windows.
    """
    from qmf.pipeline.rollup.frames import rollup_sizes

    own = recorded_class(samples.schema)
    if own.kind is not RowKind.OBJECTS:
        raise PipelineError(f"rollups: these are rows of {own.name}, not samples of a class of objects")
    return rollup_sizes(samples, own.versions, [sizes] if isinstance(sizes, str) else sizes, continued=continued)


def alerts(
    frames: DataFrame | Sequence[DataFrame], rules: str | Path | Sequence[Rule], *, late: str = "0s"
) -> DataFrame:
    """Alerts, and how they ended: the rows of the job `correlate`.

    Args:
        frames: the rows that the rules read: of classes (`samples`), and of kinds (`rows`). Heartbeats, agents and gaps
            say when recorders were recording and how far time has advanced, as for the job, where they are among them.
        rules: a file of rules, or parsed ones.
        late: by which rows may arrive late, to be evaluated at the time that their agents gave.

    Returns:
        the columns of the table of alerts but for the number of the step. Rows for which an expression of a rule cannot
        be computed give no signal to this rule.

    Raises:
        PipelineError: a rule reads a class or a kind of which no frame is given, or two frames are of the same one.
        RuleError: a rule is wrong, or doesn't fit its class.
    """
    from qmf.pipeline.correlate.frames import alert_frame
    from qmf.pipeline.correlate.rule_file import load_rules
    from qmf.views.times import parse_duration

    loaded = load_rules(rules) if isinstance(rules, (str, Path)) else tuple(rules)
    given = [frames] if isinstance(frames, DataFrame) else list(frames)
    return alert_frame([(recorded_class(frame.schema), frame) for frame in given], loaded, parse_duration(late))


def lives(frames: DataFrame | Sequence[DataFrame]) -> DataFrame:
    """The lifetime of each object and how it ended: the rows of the job `audit`.

    Args:
        frames: samples of classes; and heartbeats, agents and gaps, so that objects end with their agents. Without
            these, only objects that were destroyed or replaced have an end. All rows of an agent's objects, one for
            each lifetime, are in the memory of one task at a time.

    Returns:
        the columns of the table of lifetimes.

    Raises:
        PipelineError: a frame doesn't know its class, or is one of events.
    """
    from qmf.pipeline.audit.frames import life_frame

    given = [frames] if isinstance(frames, DataFrame) else list(frames)
    return life_frame([(recorded_class(frame.schema), frame) for frame in given])


def views(
    spark: SparkSession, lake: str, *, sizes: Sequence[str] = (), storage: Mapping[str, str] | None = None
) -> list[str]:
    """Make temporary views of a lake for SQL: one for each class, ``PACKAGE_CLASS``, and for each other kind of rows.

    Args:
        spark, lake, storage: as of `samples`.
        sizes: of windows; with sizes each class of objects has a view ``PACKAGE_CLASS_rollups`` as well.

    Returns:
        the names of the views. In names other characters than letters and digits are ``_``.
    """
    schemas = rows(spark, lake, RowKind.SCHEMAS, storage=storage)
    classes = schemas.select("package", "class", "event").distinct().orderBy("package", "class").collect()
    found: dict[str, DataFrame] = {
        kind.value: rows(spark, lake, kind, storage=storage)
        for kind in RowKind
        if kind not in (RowKind.OBJECTS, RowKind.EVENTS)
    }
    for package, name, event in classes:
        own = samples(spark, lake, name, package=package, storage=storage)
        view = re.sub(r"\W", "_", f"{package}_{name}", flags=re.ASCII)
        found[view] = own
        if sizes and not event:
            found[f"{view}_rollups"] = rollups(own, sizes)
    for view, frame in found.items():
        frame.createOrReplaceTempView(view)
    return sorted(found)


def _read(
    spark: SparkSession,
    lake: str,
    options: Mapping[str, str | None],
    storage: Mapping[str, str] | None,
    *,
    stream: bool,
) -> DataFrame:
    from qmf.pipeline.spark_access.session import register

    register(spark)
    chosen = {key: value for key, value in options.items() if value}
    chosen |= {f"storage.{key}": value for key, value in (storage or {}).items()}
    # The server of a remote session has folders of its own.
    place = lake if is_remote() else absolute(lake)
    reader = spark.readStream if stream else spark.read
    return reader.format("qmf").options(lake=place, **chosen).load()
