"""Last pass of Python: ruff sorts imports and exports, removes unused imports, and formats the modules.

The templates may thus import everything that a module of its kind can need, and care about neither line lengths nor
blank lines. ruff runs with settings of our own: neither a configuration file nor a variable of its user has influence.
"""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Mapping
from pathlib import Path

from qmf._extras import install_hint
from qmf_codegen.errors import CodegenError

_SETTINGS = ["--isolated", "--no-cache", "--quiet", "--no-respect-gitignore", "--target-version", "py311"]
_SETTINGS += ["--config", "line-length = 120"]
#: Unused imports, names that are not defined and the like; order of imports; order of `__all__`.
_RULES = ["--select", "F,I,RUF022", "--output-format", "concise"]
_RULES += ["--config", 'lint.isort = {known-first-party = ["qmf"], split-on-trailing-comma = false}']


def format_modules(modules: Mapping[str, str]) -> dict[str, str]:
    """Format rendered modules.

    Args:
        modules: text by path; paths are for messages only.

    Returns:
        the formatted text by path.

    Raises:
        CodegenError: ruff is not installed, or a module is not valid Python: a fault of the generator.
    """
    with tempfile.TemporaryDirectory(prefix="qmf-codegen-") as directory:
        # Numbered, since ruff skips names such as `build` and `venv`.
        files = {path: Path(directory, f"{number}.py") for number, path in enumerate(modules)}
        for path, file in files.items():
            file.write_bytes(modules[path].encode())
        _ruff("check", "--fix", *_RULES, directory=directory)
        _ruff("format", directory=directory)
        return {path: file.read_bytes().decode() for path, file in files.items()}


def _ruff(command: str, *options: str, directory: str) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("RUFF_")}
    done = subprocess.run(
        [*_program(), command, *_SETTINGS, *options, directory],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if "No module named ruff" in done.stderr:
        raise CodegenError(f"ruff is not installed, which formats generated code: {install_hint('codegen')}")
    if done.returncode:
        raise CodegenError(f"the generator made invalid code: {(done.stdout + done.stderr).strip()}")


def _program() -> list[str]:
    """The ruff that is installed beside us, and no module of that name in the current directory."""
    program = Path(sysconfig.get_path("scripts"), f"ruff{sysconfig.get_config_var('EXE') or ''}")
    # Starting it by Python takes 30 ms more, of 40.
    return [str(program)] if program.is_file() else [sys.executable, "-P", "-m", "ruff"]
