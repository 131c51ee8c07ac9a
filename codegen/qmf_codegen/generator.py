"""Drives the passes from schema files to the text of generated files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import attrs

from qmf.errors import Problem
from qmf_codegen.checking import check
from qmf_codegen.packages import package_names
from qmf_codegen.reading import read_all
from qmf_codegen.rendering import render
from qmf_codegen.views import view_of


@attrs.frozen
class GeneratedFile:
    """One file to be written.

    Attributes:
        path: where, relative to the output directory: package and module.
        text: all of it.
    """

    path: Path
    text: str


def generate(paths: Sequence[Path], warn: Callable[[Problem], None] | None = None) -> list[GeneratedFile]:
    """Generate all modules for some schema files, in memory.

    The result depends on nothing but the files' names and contents.

    Args:
        paths: schema files; a package is made from each.
        warn: called with each warning about a schema.

    Raises:
        SchemaError: schemas are invalid; holds the problems of all of them.
        CodegenError: two files would become the same package.
        OSError: a file cannot be read.
    """
    packages = package_names(paths)
    files: list[GeneratedFile] = []
    for source in read_all(paths, warn):
        package = packages[source.path]
        for name, text in render(view_of(source.schema, source.path.name)).items():
            path = Path(package, name)
            check(str(path), text)
            files.append(GeneratedFile(path, text))
    return files
