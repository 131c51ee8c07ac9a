"""Commands tell which extra they lack, in one line; Ctrl-C ends them at any time without a traceback."""

from __future__ import annotations

import gc
import importlib
import os
import re
import signal
import subprocess
import sys
import tomllib
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from qmf import _entry
from qmf._extras import install_hint
from qmf._version import __version__


class Lacking(MetaPathFinder):
    """Makes imports of one module fail as if it were not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, fullname: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        if fullname == self.name:
            raise ModuleNotFoundError(f"No module named {self.name!r}", name=self.name)
        return None


@pytest.fixture
def missing(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """A stand-in for the module of `qmf-host-agent`, which cannot be used without the module `request.param`."""
    name = "qmf.hostagent.cli"
    monkeypatch.setattr(sys, "meta_path", [Lacking(request.param), *sys.meta_path])
    stand_in = ModuleType(name)
    stand_in.__dict__["__getattr__"] = lambda _attribute: __import__(request.param)
    monkeypatch.setitem(sys.modules, name, stand_in)
    monkeypatch.delitem(sys.modules, request.param, raising=False)
    return request.param  # type: ignore[no-any-return]


def test_a_command_collects_garbage_when_it_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[bool] = []
    command = ModuleType("qmf.hostagent.cli")
    command.__dict__["main"] = lambda: int(gc.isenabled())

    def imported(_name: str) -> ModuleType:
        seen.append(gc.isenabled())
        return command

    monkeypatch.setattr(importlib, "import_module", imported)
    assert _entry.host_agent() == 1
    assert seen == [False]


@pytest.mark.usefixtures("missing")
@pytest.mark.parametrize("missing", ["psutil"], indirect=True)
def test_a_missing_extra_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert _entry.host_agent() == _entry.EXIT_NOT_INSTALLED
    out, err = capsys.readouterr()
    assert out == ""
    assert err == f"qmf-host-agent: psutil is not installed; get it with: {install_hint('host')}\n"


@pytest.mark.parametrize("missing", ["attrs_of_somebody_else"], indirect=True)
def test_any_other_missing_module_is_a_fault_and_stays_one(missing: str) -> None:
    with pytest.raises(ModuleNotFoundError, match=missing):
        _entry.host_agent()


@pytest.mark.slow
@pytest.mark.parametrize("where", ["", "def main() -> int:\n    "])
def test_ctrl_c_while_a_command_loads_or_runs(where: str, tmp_path: Path) -> None:
    # It comes first on the path, so it is loaded instead of the real command.
    package = tmp_path / "qmf_shell"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "main.py").write_text(f"import os, signal\n{where}os.kill(os.getpid(), signal.SIGINT)\n")
    code = "import sys; from qmf import _entry; sys.exit(_entry.shell())"
    path = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (128 + signal.SIGINT, "", "")


def _without_a_reader(*command: str) -> tuple[int, str]:
    """Exit code and standard error of a program whose output nobody reads any more."""
    read, write = os.pipe()
    os.close(read)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            [sys.executable, "-c", _COMMAND, *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    finally:
        os.close(write)
    return done.returncode, done.stderr


_COMMAND = """
import sys
from qmf import _entry
from qmf._extras import install_hint
command, sys.argv = sys.argv[1], ["", *sys.argv[2:]]
sys.exit(getattr(_entry, command)())
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ("broker", "--port", "0"),
        ("codegen", "schemas/acl.xml", "-o", "{tmp}"),
        ("codegen", "--help"),
        ("pipeline", "rules", "check", "examples/rules.toml"),
        ("pipeline", "--version"),
        ("qpid_stat", "--help"),
        ("shell", "-c", "help"),
    ],
    ids=" ".join,
)
def test_a_command_whose_output_nobody_reads_ends_without_a_message(
    command: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(Path(__file__).parents[1])
    assert _without_a_reader(*(word.format(tmp=tmp_path) for word in command)) == (0, "")


#: What pyproject.toml says about the project.
PROJECT: dict[str, Any] = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text())["project"]

#: Runs one command as if no extra were installed.
_BARE = """
import sys
class Lacking:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in set(sys.argv[1].split(",")):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Lacking())
from qmf import _entry
from qmf._extras import install_hint
command, sys.argv = sys.argv[2], ["", *sys.argv[3:]]
sys.exit(getattr(_entry, command)())
"""


def optional_modules() -> set[str]:
    """The modules of everything that comes with an extra, as pyproject.toml lists it."""
    extras = PROJECT["optional-dependencies"].values()
    names = {re.split(r"[\[<>=~;]", item)[0] for items in extras for item in items}
    other = {
        **{"prometheus-client": "prometheus_client", "prompt-toolkit": "prompt_toolkit", "pyyaml": "yaml"},
        **dict.fromkeys(("opentelemetry-sdk", "opentelemetry-exporter-otlp-proto-http"), "opentelemetry"),
    }
    return {other.get(name, name) for name in names if name != "qmf"} | {"wcwidth", "numpy"}


@pytest.mark.slow
@pytest.mark.parametrize("command", sorted(PROJECT["scripts"]))
@pytest.mark.parametrize(("option", "part"), [("--help", "usage: "), ("--version", __version__)])
def test_help_and_version_need_no_extra(command: str, option: str, part: str) -> None:
    modules = ",".join(sorted(optional_modules()))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", _BARE, modules, PROJECT["scripts"][command].partition(":")[2], option],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert part in done.stdout


def _commands() -> list[tuple[str, ...]]:
    from qmf.pipeline.cli import parsers

    own = ("broker", "codegen", "host_agent", "pipeline", "printevents", "shell", "stat", "web")
    return [*((name,) for name in own), *(("pipeline", *name.split()) for name in parsers()[1])]


@pytest.mark.parametrize("command", _commands(), ids=" ".join)
def test_options_are_given_by_their_whole_names(command: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    name, *words = command

    def run(option: str) -> object:
        monkeypatch.setattr(sys, "argv", [name, *words, option])
        try:
            return getattr(_entry, name)()
        except SystemExit as leaving:
            return leaving.code

    assert run("--hel")
    assert not run("--help")


def test_options_of_published_names_may_be_abbreviated(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("qpid_printevents", "qpid_tool"):
        monkeypatch.setattr(sys, "argv", [name, "--versio"])
        assert getattr(_entry, name)() == 0
        assert __version__ in capsys.readouterr().out
