"""A folder on any file system that Hadoop supports: the few operations that need no DataFrame."""

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
    """One folder with its content; paths are relative to the folder, with slashes.

    Methods block. They raise `LakeError`, with the path and Hadoop's reason, where the file system fails.

    Args:
        spark: its Hadoop is used, with its settings and jars.
        url: of the folder, which need not exist yet.
    """

    def __init__(self, spark: SparkSession, url: str) -> None:
        jvm = spark.sparkContext._jvm
        assert jvm is not None
        self.url = url.rstrip("/")
        self._path: Any = jvm.org.apache.hadoop.fs.Path
        with self._lake_errors(""):
            self._system: Any = self._at("").getFileSystem(spark.sparkContext._jsc.hadoopConfiguration())

    def names(self, inside: str) -> list[str]:
        """The names in a folder; none where the folder doesn't exist."""
        with self._lake_errors(inside):
            if not self._system.exists(self._at(inside)):
                return []
            return sorted(str(status.getPath().getName()) for status in self._system.listStatus(self._at(inside)))

    def put(self, source: Path, inside: str) -> None:
        """Copy a local file there, whole or not at all; an existing file is replaced."""
        folder, _, name = inside.rpartition("/")
        temporary = self._at(f"{folder}/{TEMPORARY}{name}")
        target = self._at(inside)
        with self._lake_errors(inside):
            self._system.mkdirs(self._at(folder))
            self._system.copyFromLocalFile(False, True, self._path(f"file://{source.absolute()}"), temporary)
            self._replace(temporary, target)

    def move(self, inside: str, to: str) -> None:
        """Move a file; does nothing where it doesn't exist."""
        with self._lake_errors(inside):
            if self._system.exists(self._at(inside)):
                self._system.mkdirs(self._at(to.rpartition("/")[0]))
                self._replace(self._at(inside), self._at(to))

    def delete(self, inside: str) -> None:
        """Delete a file, or a folder with its content, if it exists."""
        with self._lake_errors(inside):
            self._system.delete(self._at(inside), True)

    def _replace(self, source: Any, target: Any) -> None:
        self._system.delete(target, False)
        if not self._system.rename(source, target):
            raise LakeError(f"{target}: could not be renamed from {source}")

    def _at(self, inside: str) -> Any:
        return self._path(f"{self.url}/{inside}" if inside else self.url)

    @contextmanager
    def _lake_errors(self, inside: str) -> Iterator[None]:
        """Raise each error of Hadoop as a `LakeError`."""
        try:
            yield
        except Py4JJavaError as error:
            reason = error.java_exception
            text = str(reason.getMessage() or reason.toString()).partition("\n")[0]
            raise LakeError(f"{self.url}/{inside}: {text}") from error
