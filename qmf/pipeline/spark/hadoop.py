"""A folder of any file system that Hadoop knows: the few things that are done there without a DataFrame."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.layout import TEMPORARY


class HadoopFolder:
    """One folder and what lies below it; paths are inside the folder, with slashes.

    Methods block; they raise `LakeError`, with the path and Hadoop's reason, for what the file system refuses.

    Args:
        spark: whose Hadoop, with its settings and jars.
        url: of the folder, which need not be there yet.
    """

    def __init__(self, spark: SparkSession, url: str) -> None:
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        self.url = url.rstrip("/")
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        with self._told(""):
            self._system: Any = self._at("").getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())

    def names(self, inside: str) -> list[str]:
        """What lies in a folder; nothing where there is none."""
        with self._told(inside):
            if not self._system.exists(self._at(inside)):
                return []
            return sorted(str(status.getPath().getName()) for status in self._system.listStatus(self._at(inside)))

    def put(self, source: Path, inside: str) -> None:
        """Copy a local file there, whole or not at all; what was there is replaced."""
        folder, _, name = inside.rpartition("/")
        temporary = self._at(f"{folder}/{TEMPORARY}{name}")
        target = self._at(inside)
        with self._told(inside):
            self._system.mkdirs(self._at(folder))
            self._system.copyFromLocalFile(False, True, self._path(f"file://{source.absolute()}"), temporary)
            self._replace(temporary, target)

    def move(self, inside: str, to: str) -> None:
        """Give a file another place; nothing is done where there is no file."""
        with self._told(inside):
            if self._system.exists(self._at(inside)):
                self._system.mkdirs(self._at(to.rpartition("/")[0]))
                self._replace(self._at(inside), self._at(to))

    def delete(self, inside: str) -> None:
        """Remove a file, or a folder with all that is in it, if it is there."""
        with self._told(inside):
            self._system.delete(self._at(inside), True)

    def _replace(self, source: Any, target: Any) -> None:
        self._system.delete(target, False)
        if not self._system.rename(source, target):
            raise LakeError(f"{target}: could not be renamed from {source}")

    def _at(self, inside: str) -> Any:
        return self._path(f"{self.url}/{inside}" if inside else self.url)

    @contextmanager
    def _told(self, inside: str) -> Iterator[None]:
        """Turn Hadoop's refusals into `LakeError`."""
        try:
            yield
        except Py4JJavaError as error:
            reason = error.java_exception
            text = str(reason.getMessage() or reason.toString()).partition("\n")[0]
            raise LakeError(f"{self.url}/{inside}: {text}") from error
