"""Compiles the optional modules of engine, codecs and agent when the project is installed, or a wheel built."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

#: Set to leave the modules out.
NO_NATIVE = "QMF_NO_NATIVE"


class NativeBuildHook(BuildHookInterface[Any]):  # type: ignore[misc, unused-ignore]  # hatchling is there while building only
    """Adds the compiled modules where there is a compiler; all works without them."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
        """See hatchling."""
        root = Path(self.root)
        if self.target_name != "wheel" or os.environ.get(NO_NATIVE):
            return
        extensions = _c_extensions(root / "scripts" / "c_extensions.py")
        for source, missing in extensions.SOURCES.items():
            try:
                module = extensions.build(root, source)
            except Exception as error:  # noqa: BLE001 - whatever cffi, setuptools and the compiler raise
                self.app.display_warning(f"{missing}: {error}")
                continue
            build_data["pure_python"] = False
            build_data["infer_tag"] = True
            build_data["artifacts"].append(str(module.relative_to(root)))


def _c_extensions(script: Path) -> Any:
    """The module beside this one, which is loaded from its path as well."""
    spec = importlib.util.spec_from_file_location(script.stem, script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
