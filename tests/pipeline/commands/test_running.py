"""Where jobs run, and with which settings of Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pipeline.lakes import Shop

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.cli import main
from qmf.pipeline.commands import running
from qmf.pipeline.errors import PipelineError

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
