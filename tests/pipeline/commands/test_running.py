"""Where jobs run, and with which settings of Spark, whose failures are one line with the cause."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pipeline.lakes import Shop

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.cli import main
from qmf.pipeline.commands import running
from qmf.pipeline.commands.running import JavaOutput, cause
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.spark_access.session import check_java

QUICK_JAVA = "spark.executor.extraJavaOptions"


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> str:
    shop = Shop(tmp_path_factory.mktemp("running") / "lake")
    shop.put((10, 1), (20, 2))
    return shop.root


@pytest.fixture
def settings_of(lake: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., dict[str, str]]:
    """The settings with which a command starts Spark; it is not started."""
    found: list[dict[str, str]] = []

    def refused(_master: str, *, settings: dict[str, str], **_more: Any) -> None:
        found.append(settings)
        raise PipelineError("not here")

    monkeypatch.setattr("qmf.pipeline.spark_access.session.session", refused)

    def of(*words: str) -> dict[str, str]:
        assert main([words[0], "--lake", lake, "--out", str(tmp_path / "out"), *words[1:], "--master", "local[2]"]) == 2
        return found[-1]

    return of


def test_java_compiles_quickly_for_small_lakes(
    settings_of: Callable[..., dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    small = settings_of("audit")
    assert "TieredStopAtLevel" in small[QUICK_JAVA]
    assert small["spark.sql.adaptive.enabled"] == "false"
    assert QUICK_JAVA not in settings_of("audit", "--stream")
    assert settings_of("audit", "--conf", f"{QUICK_JAVA}=-Xss2m")[QUICK_JAVA] == "-Xss2m"
    monkeypatch.setattr(running, "SMALL_ROWS", 1)
    assert QUICK_JAVA not in settings_of("audit")


IN_EXECUTOR = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/x/tasks.py", line 3, in run
    raise LakeError(text)
qmf.pipeline.errors.LakeError: lake: no magic bytes

	at org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
"""
IN_JAVA = """An error occurred while calling o1.save.
: org.apache.spark.SparkException: Job aborted.
	at org.apache.spark.sql.Some.where(Some.scala:1)
Caused by: java.io.IOException: Connection refused
	at java.base/x(y.java:2)
"""


@pytest.mark.parametrize(
    ("text", "output", "expected"),
    [
        (IN_EXECUTOR, "", "lake: no magic bytes"),
        (IN_JAVA, "", "Connection refused"),
        (IN_JAVA, "1 ERROR S: Application has been killed. Reason: All masters are unresponsive!", "All masters are"),
        ("[JAVA_GATEWAY_EXITED] x", 'Exception in thread "main" a.B: Master must be\n\tat x', "Master must be"),
        ("[JAVA_GATEWAY_EXITED] x", "", "[JAVA_GATEWAY_EXITED] x"),
        ("[UNRESOLVED_COLUMN] no column\nat line 3", "", "[UNRESOLVED_COLUMN] no column"),
        ("\n", "", "it gave no reason"),
    ],
)
def test_the_cause(text: str, output: str, expected: str) -> None:
    found = cause(text, output)
    assert found.startswith(expected)
    assert "\n" not in found


def test_what_java_writes_is_kept_but_for_progress(capfd: pytest.CaptureFixture[str]) -> None:
    output = JavaOutput()
    with output.capture():
        subprocess.run(["sh", "-c", "printf 'one\\r[Stage 1: 2/3]\\rtwo\\n' >&2"], check=True)
    assert output.text().splitlines() == ["one", "two"]
    os.write(2, b"three")
    assert capfd.readouterr().err.strip("\r") == "[Stage 1: 2/3]\rthree"


@pytest.mark.slow
def test_a_master_that_is_none_is_one_line(shop: Shop) -> None:
    try:
        check_java()
    except PipelineError as error:
        pytest.skip(str(error))
    program = "import sys; from qmf.pipeline.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", program, "rollup", "--lake", shop.root, "--master", "nosuch"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("qmf-pipeline: Spark: Master must ")
    assert done.stderr.endswith("; --verbose has the rest\n")
    assert done.stderr.count("\n") == 1


@pytest.fixture
def shop(tmp_path: object) -> Shop:
    shop = Shop(f"{tmp_path}/lake")
    shop.put((1, 10))
    return shop
