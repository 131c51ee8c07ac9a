"""Without a usable Java, the error names the one that was found, the one needed, and how to install it."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmf.pipeline import PipelineError
from qmf.pipeline.cli import main
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.spark_access.session import check_java

WANTED = r"Spark needs Java 17 or newer: apt-get install openjdk-17-jre-headless"


def fake(home: Path, script: str) -> Path:
    """A Java installation whose program is a shell script."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def test_no_java_in_the_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(PipelineError, match=f"no java in the path, and JAVA_HOME is not set. {WANTED}"):
        check_java()


def test_a_java_home_without_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=rf"JAVA_HOME is {tmp_path}, but there is no program .*bin/java. {WANTED}"):
        check_java()


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("echo 'openjdk version \"1.8.0_402\"' >&2", "is Java 8"),
        ("echo 'openjdk version \"11.0.22\" 2024-01-16' >&2", "is Java 11"),
        ("echo nonsense >&2", "does not print its version: nonsense"),
        ("exit 1", "does not print its version: no output"),
    ],
)
def test_an_unusable_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, script: str, message: str) -> None:
    program = fake(tmp_path, script)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=f"{program} {message}. {WANTED}"):
        check_java()


def test_a_java_that_does_not_start(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    fake(tmp_path, "").write_bytes(b"\x7fELF nonsense")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(PipelineError, match=f"does not run: .*{WANTED}"):
        check_java()


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "25-ea"])
def test_usable_versions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, version: str) -> None:
    fake(tmp_path, f"touch '{tmp_path}/asked'; echo 'openjdk version \"{version}\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    check_java()
    assert (tmp_path / "asked").exists()


def test_the_command_reports_it_in_one_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fake(tmp_path, "echo 'openjdk version \"11.0.22\"' >&2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    DeltaLake(str(tmp_path / "lake")).create()
    assert main(["audit", "--master", "local[2]", "--lake", str(tmp_path / "lake")]) == 2
    output = capsys.readouterr().err
    assert output.startswith(f"qmf-pipeline: {tmp_path}/bin/java is Java 11. Spark needs Java 17 or newer: ")
    assert output.count("\n") == 1
