"""Packages whose exports are loaded when they are used: type checkers see the same names."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ["qmf.bus", "qmf.broker", "qmf.console", "qmf.console.aio"]


def seen_by_type_checkers(package: str) -> dict[str, str]:
    """Modules by the names that stand below `if TYPE_CHECKING`."""
    tree = ast.parse((ROOT / package.replace(".", "/") / "__init__.py").read_text(encoding="utf-8"))
    (guarded,) = [node for node in tree.body if isinstance(node, ast.If)]
    return {
        alias.name: str(node.module)
        for node in guarded.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


@pytest.mark.parametrize("package", PACKAGES)
def test_every_export_is_the_one_that_type_checkers_see(package: str) -> None:
    module = importlib.import_module(package)
    imports = seen_by_type_checkers(package)
    assert sorted(imports) == sorted(module.__all__)
    for name, home in imports.items():
        assert getattr(module, name) is getattr(importlib.import_module(home), name)
    assert set(module.__all__) <= set(dir(module))


@pytest.mark.parametrize("package", PACKAGES)
def test_an_unknown_name_is_an_attribute_error(package: str) -> None:
    module = importlib.import_module(package)
    with pytest.raises(AttributeError, match=f"module '{package}' has no attribute 'Nonsense'"):
        module.Nonsense  # noqa: B018
    with pytest.raises(ImportError, match="Nonsense"):
        exec(f"from {package} import Nonsense")


@pytest.mark.slow
@pytest.mark.parametrize(
    "code", ["from qmf.bus import *", "from qmf.console import *", "from qmf.console.aio import *"]
)
def test_proton_is_loaded_with_the_first_connection(code: str) -> None:
    """MemoryBus, for tests, reads destinations with proton."""
    code = code.replace("bus import *", "bus import AmqpBus")
    run = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print('proton' in sys.modules)"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert run.stdout.strip() == "False"
