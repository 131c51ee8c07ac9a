"""Processes that need no pandas do not import it."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.without_pandas import without_pandas


def test_pandas_is_not_found_in_the_block(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "pandas", raising=False)
    with without_pandas():
        with pytest.raises(ModuleNotFoundError, match="No module named 'pandas'"):
            import_module("pandas")
        assert import_module("numpy")
    assert not [finder for finder in sys.meta_path if type(finder).__module__ == without_pandas.__module__]


@pytest.mark.slow
def test_the_command_does_not_import_it() -> None:
    script = (
        "import sys; from qmf.pipeline import cli; "
        "cli.main = lambda: int(bool(__import__('pyarrow.dataset')) and 'pandas' in sys.modules); "
        "sys.exit(cli.program())"
    )
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0
