"""Compiles the optional module of the AMQP engine when the project is installed or a wheel is built."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Set to leave the module out.
NO_NATIVE = "QMF_NO_NATIVE"


class NativeBuildHook(BuildHookInterface[Any]):  # type: ignore[misc]  # hatchling is there while building only
    """Adds `qmf/bus/engine/_batches` where there is a compiler; without it the engine is slower, and complete."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """See hatchling."""
        root = Path(self.root)
        if self.target_name != "wheel" or os.environ.get(NO_NATIVE):
            return
        script = root / "qmf" / "bus" / "engine" / "batches_build.py"
        spec = importlib.util.spec_from_file_location("batches_build", script)
        assert spec is not None
        assert spec.loader is not None
        builder = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(builder)
        try:
            module = builder.build(root)
        except Exception as error:  # noqa: BLE001 - whatever cffi, setuptools and the compiler raise
            self.app.display_warning(f"The AMQP engine is not compiled, and slower without: {error}")
            return
        build_data["pure_python"] = False
        build_data["infer_tag"] = True
        build_data["artifacts"].append(str(module.relative_to(root)))
