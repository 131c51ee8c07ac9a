"""The name of the Python package, or of the document, that a schema file becomes."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from qmf_codegen.errors import CodegenError

_OTHER = re.compile(r"[^A-Za-z0-9_]")


def package_name(path: Path) -> str:
    """The package for a file: its name without suffix, made an identifier: ``apache-ha.xml`` becomes ``apache_ha``."""
    name = _OTHER.sub("_", path.stem)
    if not name or name[0].isdigit():
        name = f"_{name}"
    return f"{name}_" if keyword.iskeyword(name) else name


def package_names(paths: Iterable[Path]) -> dict[Path, str]:
    """The package of each schema file.

    Raises:
        CodegenError: two files would get the same one.
    """
    return _unique(paths, package_name, "package")


def file_names(paths: Iterable[Path], suffix: str) -> dict[Path, str]:
    """The name of the document that each schema file becomes.

    Raises:
        CodegenError: two files would get the same one.
    """
    return _unique(paths, lambda path: f"{path.stem}{suffix}", "file")


def _unique(paths: Iterable[Path], name: Callable[[Path], str], what: str) -> dict[Path, str]:
    owners: dict[str, Path] = {}
    for path in paths:
        other = owners.setdefault(name(path), path)
        if other is not path:
            raise CodegenError(f"{other} and {path} would both become {what} {name(path)!r}")
    return {path: name for name, path in owners.items()}
