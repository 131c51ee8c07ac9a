"""Compiles `walker.c` to `qmf.bus.frames._walker`, when the project is installed (`scripts/build_hook.py`).

Where that fails, or was not done, `walker.py` does the same in Python.
"""

from __future__ import annotations

import importlib
import shutil
import tempfile
from pathlib import Path

#: What `walker.py` uses.
DECLARATIONS = """
typedef struct {
    uint64_t start;
    uint64_t end;
    uint32_t kind;
    uint32_t value;
    uint32_t channel;
} stop_t;
typedef struct {
    uint64_t skip;
    uint32_t outgoing;
    uint32_t lost;
    uint32_t head_size;
    stop_t due;
    stop_t found;
    uint8_t head[128];
} walker_t;
int version(void);
int next_stop(walker_t *walker, const char *data, size_t size, size_t offset);
"""


def build(root: Path) -> Path:
    """Compile the module.

    Args:
        root: the folder that `qmf` lies in; the module is put into its place there.

    Returns:
        path of the module.

    Raises:
        Exception: cffi, a compiler or Python's headers are missing, or the compiler failed; whatever these raise.
    """
    # Imported here and by name: cffi has no types, and is needed only now.
    builder = importlib.import_module("cffi").FFI()
    builder.cdef(DECLARATIONS)
    source = Path(__file__).with_name("walker.c").read_text(encoding="utf-8")
    builder.set_source("_walker", source, extra_compile_args=["-O2"])
    # Elsewhere: setuptools would read this project's pyproject.toml.
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(builder.compile(tmpdir=folder))
        return Path(shutil.copy(compiled, root / "qmf" / "bus" / "frames" / compiled.name))
