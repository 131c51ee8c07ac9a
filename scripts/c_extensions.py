"""Compiles the modules of the project that are written in C, each into its place beside its source.

``python scripts/c_extensions.py`` compiles all of them. Where a module is missing, the project does the same in Python.
"""

from __future__ import annotations

import importlib
import shutil
import tempfile
from pathlib import Path

#: Sources, and what it means if one is not compiled.
SOURCES = {
    "qmf/bus/engine/native.c": "The AMQP engine is not compiled, and slower without",
    "qmf/bus/frames/walker.c": "The walker of AMQP frames is not compiled, and slower without",
    "qmf/bus/gate.c": "A thread that sends wakes up that of its connection each time, which is slower",
    "qmf/codec/plain_maps.c": "Maps of AMQP 0-10 are not compiled, and slower without",
    "qmf/messaging/arrivals.c": "Received messages are made by functions in Python, and slower without",
    "qmf/broker/protocols/mqtt/codec/runs.c": "Packets of MQTT are read and written one by one, which is slower",
    "qmf/agent/model/unknown_names.c": "Errors of unknown attributes name no similar ones",
    "qmf/protocol/objects/event_forms.c": "Events are not read by compiled functions, and slower without",
    "qmf/records.c": "Values that come in large numbers are made by functions in Python, which is slower",
}

#: What `qmf/bus/frames/walker.py` uses of `walker.c`, which knows nothing of Python.
WALKER_DECLARATIONS = """
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

_ARGUMENTS = ["-O2"]


def build(root: Path, source: str) -> Path:
    """Compile a module: of ``native.c`` the module ``_native``.

    Args:
        root: the folder of the project.
        source: one of `SOURCES`.

    Returns:
        path of the module.

    Raises:
        Exception: cffi, setuptools, a compiler or Python's headers are missing, or the compiler failed; whatever these
            raise.
    """
    path = root / source
    with tempfile.TemporaryDirectory() as folder:
        compiled = (_build_walker if path.name == "walker.c" else _build_extension)(path, folder)
        # A program that runs has the old file open: it keeps that one, and does not see the new bytes in its memory.
        target = path.parent / compiled.name
        return Path(shutil.copy(compiled, target.with_name(f"{target.name}.part"))).replace(target)


def _build_extension(source: Path, folder: str) -> Path:
    # Imported here and by name, like cffi: needed only now.
    setuptools = importlib.import_module("setuptools")
    name = f"_{source.stem}"
    extension = setuptools.Extension(name, [str(source)], extra_compile_args=_ARGUMENTS)
    # A distribution of its own: the project's pyproject.toml is not read.
    command = setuptools.Distribution({"ext_modules": [extension]}).get_command_obj("build_ext")
    command.build_lib = command.build_temp = folder
    command.ensure_finalized()
    command.run()
    return Path(command.get_ext_fullpath(name))


def _build_walker(source: Path, folder: str) -> Path:
    builder = importlib.import_module("cffi").FFI()
    builder.cdef(WALKER_DECLARATIONS)
    builder.set_source("_walker", source.read_text(encoding="utf-8"), extra_compile_args=_ARGUMENTS)
    # In a folder elsewhere: setuptools would read this project's pyproject.toml.
    return Path(builder.compile(tmpdir=folder))


if __name__ == "__main__":
    for each in SOURCES:
        print(build(Path(__file__).resolve().parents[1], each))
