"""What `make` and pip install: each command what it needs, and one clear line where there is no C compiler."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[1]


def commands_of(target: str, venv: Path, *options: str) -> list[str]:
    """What `make TARGET` would run."""
    done = subprocess.run(
        ["make", "--dry-run", "--no-print-directory", *options, target, f"VENV={venv}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.parametrize(("target", "extra"), [("shell", "standard"), ("web", "web"), ("test", "dev"), ("lint", "dev")])
def test_a_command_installs_what_it_needs(target: str, extra: str, tmp_path: Path) -> None:
    assert commands_of(target, tmp_path)[0] == f"sh scripts/setup.sh {tmp_path} {extra}"


@pytest.mark.parametrize("target", ["shell", "web", "test"])
def test_with_everything_installed_nothing_is(target: str, tmp_path: Path) -> None:
    (tmp_path / ".installed-dev").touch()
    assert not any("setup.sh" in line for line in commands_of(target, tmp_path))


@pytest.mark.parametrize("source", ["qmf/bus/gate.c", "qmf/bus/gate.h", "qmf/codec/plain_maps.c"])
def test_what_is_compiled_is_installed_again_when_its_source_is_newer(source: str, tmp_path: Path) -> None:
    (tmp_path / ".installed-dev").touch()
    assert commands_of("test", tmp_path, f"--what-if={source}")[0] == f"sh scripts/setup.sh {tmp_path} dev"


@pytest.fixture
def metadata_hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module that pip runs first; hatchling, which it is written for, is there only while the project is built."""
    for name in ("hatchling", "hatchling.metadata", "hatchling.metadata.plugin", "hatchling.metadata.plugin.interface"):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    sys.modules["hatchling.metadata.plugin.interface"].__dict__["MetadataHookInterface"] = object
    monkeypatch.delitem(sys.modules, "scripts.metadata_hook", raising=False)
    return importlib.import_module("scripts.metadata_hook")


def test_a_missing_compiler_ends_the_installation_with_one_line(metadata_hook: ModuleType, tmp_path: Path) -> None:
    message = metadata_hook.missing_compiler({"PATH": str(tmp_path)})
    assert "there is no C compiler. On Debian: apt-get install gcc" in message
    assert "\n" not in message


@pytest.mark.parametrize("environment", [{"CC": "fancy-cc -O2"}, {}, {"QMF_NO_NATIVE": "1", "PATH": "/nowhere"}])
def test_a_compiler_is_found_by_name_or_not_needed(
    metadata_hook: ModuleType, environment: dict[str, str], tmp_path: Path
) -> None:
    compiler = tmp_path / environment.get("CC", "gcc").split()[0]
    compiler.touch(mode=0o755)
    assert metadata_hook.missing_compiler({"PATH": str(tmp_path), **environment}) is None


def test_a_module_that_is_compiled_again_takes_the_place_of_a_file_that_programs_may_have_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    extensions = importlib.import_module("scripts.c_extensions")
    (tmp_path / "part").mkdir()

    def compile(source: Path, folder: str) -> Path:
        made = Path(folder) / f"_{source.stem}.so"
        made.write_text("new")
        return made

    monkeypatch.setattr(extensions, "_build_extension", compile)
    old = tmp_path / "part" / "_native.so"
    old.write_text("old")
    with old.open() as used:
        assert extensions.build(tmp_path, "part/native.c") == old
        assert (used.read(), old.read_text()) == ("old", "new")
    assert list(old.parent.iterdir()) == [old]
