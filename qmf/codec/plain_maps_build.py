"""Compiles `plain_maps.c` to `qmf.codec._plain_maps`, when the project is installed.

`scripts/build_hook.py` does that. Where it fails, or was not done, the functions in Python
do everything (`plain_maps.py`).
"""

from __future__ import annotations

import importlib
import shutil
import tempfile
from pathlib import Path


def build(root: Path) -> Path:
    """Compile the module.

    Args:
        root: the folder that `qmf` lies in; the module is put into its place there.

    Returns:
        path of the module.

    Raises:
        Exception: setuptools, a compiler or Python's headers are missing, or the compiler failed; whatever these raise.
    """
    # Imported here and by name: setuptools is needed only now.
    setuptools = importlib.import_module("setuptools")
    source = Path(__file__).with_name("plain_maps.c")
    with tempfile.TemporaryDirectory() as folder:
        extension = setuptools.Extension("_plain_maps", [str(source)], extra_compile_args=["-O2"])
        # A distribution of its own: the project's pyproject.toml is not read.
        command = setuptools.Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
        command.build_lib = command.build_temp = folder
        command.ensure_finalized()
        command.run()
        compiled = Path(command.get_ext_fullpath("_plain_maps"))
        return Path(shutil.copy(compiled, root / "qmf" / "codec" / compiled.name))
