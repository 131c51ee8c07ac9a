"""The process that Spark's Python workers are copies of."""

from __future__ import annotations

import sys
from importlib import import_module

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.runners.worker_daemon import without_pandas


def test_pandas_is_not_found_while_a_job_imports(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    with without_pandas():
        with pytest.raises(ModuleNotFoundError, match="No module named 'pandas'"):
            import_module("pandas")
        assert import_module("numpy")
    assert not [finder for finder in sys.meta_path if type(finder).__module__ == without_pandas.__module__]
