"""Generated packages in tests: written to a directory, imported from there, checked by linter and type checker."""

from __future__ import annotations

import fcntl
import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType

from qmf_codegen import Format, generate
from qmf_codegen.python.formatting import format_modules
from qmf_codegen.python.rendering import render

from qmf.schema import Schema

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = ROOT / "tests" / "codegen" / "golden" / "pump-station.xml"


def pump_station(format: Format) -> str:
    """The document that is made of the small schema of the tests."""
    (file,) = generate([GOLDEN], format=format)
    return file.text


def make(schema: Schema, directory: Path, package: str) -> None:
    """Generate a package for a schema in memory."""
    (directory / package).mkdir(parents=True)
    for name, text in format_modules(render(schema, "invented.xml")).items():
        (directory / package / name).write_bytes(text.encode())


@contextmanager
def imported(directory: Path, package: str, *modules: str) -> Iterator[list[ModuleType]]:
    """Modules of a generated package, imported under a name that nothing else has, and forgotten afterwards."""
    prefix = f"_generated_{package}"
    names = [prefix, *(f"{prefix}.{module}" for module in modules)]
    try:
        loaded = []
        for name in names:
            path = directory / package / f"{name.rpartition('.')[2] if '.' in name else '__init__'}.py"
            locations = [str(directory / package)] if name == prefix else None
            spec = importlib.util.spec_from_file_location(name, path, submodule_search_locations=locations)
            assert spec is not None
            assert spec.loader is not None
            module = sys.modules[name] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            loaded.append(module)
        yield loaded[1:]
    finally:
        for name in [name for name in sys.modules if name == prefix or name.startswith(f"{prefix}.")]:
            del sys.modules[name]


def complaints(directory: Path) -> str:
    """Messages of ruff and mypy about generated packages, with the project's settings; empty if there are none."""
    config = ["--config", str(ROOT / "pyproject.toml")]
    commands = [
        ["ruff", "check", "--no-cache", *config, "--config", 'lint.isort.known-first-party=["qmf"]'],
        ["ruff", "format", "--no-cache", "--diff", *config],
        [
            "mypy",
            "--config-file",
            str(ROOT / "pyproject.toml"),
            "--cache-dir",
            str(ROOT / ".mypy_cache"),
            "--no-error-summary",
        ],
    ]
    messages = []
    with (ROOT / "pyproject.toml").open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # mypy's cache is for one process at a time
        for command in commands:
            done = subprocess.run(
                [sys.executable, "-m", *command, str(directory)], cwd=ROOT, capture_output=True, text=True, check=False
            )
            if done.returncode:
                messages.append(done.stdout + done.stderr)
    return "\n".join(messages)
