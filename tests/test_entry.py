"""Commands tell which extra they lack, in one line; Ctrl-C ends them at any time without a traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from qmf import _entry


class Lacking(MetaPathFinder):
    """Makes imports of one module fail as if it were not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname == self.name:
            raise ModuleNotFoundError(f"No module named {self.name!r}", name=self.name)
        return None


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A stand-in for a command's module, whose import fails for want of `request.param`."""
    name = "qmf_test_absent_command"
    monkeypatch.setattr(sys, "meta_path", [Lacking(request.param), *sys.meta_path])
    stand_in = ModuleType(name)
    stand_in.__dict__["__getattr__"] = lambda _attribute: __import__(request.param)
    monkeypatch.setitem(sys.modules, name, stand_in)
    monkeypatch.delitem(sys.modules, request.param, raising=False)
    return name


@pytest.mark.parametrize("module", ["psutil"], indirect=True)
def test_a_missing_extra_is_named(module: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert _entry._run("qmf-host-agent", module, "host") == _entry.EXIT_NOT_INSTALLED
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "qmf-host-agent: psutil is not installed; get it with: pip install 'qmf[host]'\n"


@pytest.mark.parametrize("module", ["attrs_of_somebody_else"], indirect=True)
def test_any_other_missing_module_is_a_fault_and_stays_one(module: str) -> None:
    with pytest.raises(ModuleNotFoundError, match="attrs_of_somebody_else"):
        _entry._run("qmf-host-agent", module, "host")


@pytest.mark.slow
@pytest.mark.parametrize("where", ["", "def main() -> int:\n    "])
def test_ctrl_c_while_a_command_loads_or_runs(where: str, tmp_path: Path) -> None:
    (tmp_path / "interrupted_command.py").write_text(f"import os, signal\n{where}os.kill(os.getpid(), signal.SIGINT)\n")
    code = "import sys; from qmf import _entry; sys.exit(_entry._run('qmf-x', 'interrupted_command', None))"
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")
