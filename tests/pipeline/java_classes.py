"""Options of Java for Spark in tests, and an archive of the classes that Spark loads.

With the archive Java needs half of the processor time until the first results. The session that tests share makes it
where there is none, once for each virtual environment, Java and Spark: that takes some seconds and 190 MB. Java ignores
an archive that does not fit.
"""

from __future__ import annotations

import os
import shutil
import sys
import zlib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import psutil

#: For many small queries.
_QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
    " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote -Djdk.lang.Process.launchMechanism=VFORK"
)


def archive() -> Path | None:
    """Where the archive is, or would be; None without Java, Spark or a virtual environment."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=f"{home}/bin" if home else None)
    try:
        spark = version("pyspark")
    except PackageNotFoundError:
        return None
    if java is None or sys.prefix == sys.base_prefix:
        return None
    program = Path(java).resolve()
    made_for = f"{program} {program.stat().st_mtime_ns} {_QUICK}"
    return Path(sys.prefix, f"spark-{spark}-{zlib.crc32(made_for.encode()):08x}.jsa")


def java_options(new_archive: Path | None = None) -> str:
    """Options that use the archive if it is there, or that make a new one when Java ends."""
    if new_archive is not None:
        return f"{_QUICK} -XX:ArchiveClassesAtExit={new_archive} -Xlog:disable"
    found = archive()
    return f"{_QUICK} -XX:SharedArchiveFile={found} -Xlog:disable" if found and found.exists() else _QUICK


def keep_archive(java: int, made: Path, target: Path) -> None:
    """End the Java of a session, by its process id, and take the archive that it makes then into use."""
    process = psutil.Process(java)
    process.terminate()
    process.wait()
    if made.exists():
        made.replace(target)
