"""Compiles `batches.c` to `qmf.bus.engine._batches`, when the project is installed (`scripts/build_hook.py`).

Where that fails, or was not done, the engine works without (`native.py`).
"""

from __future__ import annotations

import importlib
import shutil
import tempfile
from pathlib import Path

#: What `native.py` calls.
DECLARATIONS = """
typedef struct {
    uintptr_t address;
    uint32_t number;
    uint32_t flags;
} link_t;
typedef struct {
    uint32_t link;
    uint32_t kind;
    uint64_t delivery;
    uint32_t offset;
    uint32_t size;
} record_t;
int version(void);
void bind(const uintptr_t *addresses, int delivery_event, int flow_event, int transport_event, uint64_t accepted,
          uint64_t transactional);
int collect(uintptr_t collector, const link_t *links, int link_count, record_t *out, int most, char *buffer,
            size_t size, size_t limit, int flow, int *more);
uintptr_t send_message(uintptr_t link, const char *tag, size_t tag_size, const char *data, size_t size, int settled);
void accept_message(uintptr_t delivery);
void accept_all(const uintptr_t *deliveries, size_t count);
size_t output(uintptr_t transport, uintptr_t collector, char *buffer, size_t size, int *more);
int readiness(uintptr_t link, uintptr_t session, size_t backlog);
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
    source = Path(__file__).with_name("batches.c").read_text(encoding="utf-8")
    builder.set_source("_batches", source, extra_compile_args=["-O2"])
    # Elsewhere: setuptools would read this project's pyproject.toml.
    with tempfile.TemporaryDirectory() as folder:
        compiled = Path(builder.compile(tmpdir=folder))
        return Path(shutil.copy(compiled, root / "qmf" / "bus" / "engine" / compiled.name))
