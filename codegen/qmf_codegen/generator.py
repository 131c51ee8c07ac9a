"""Drives the passes from schema files to the text of generated files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from qmf.errors import SchemaProblem
from qmf.schema import Schema
from qmf_codegen.formats import json_schema, markdown, xml
from qmf_codegen.outputs import Format, GeneratedFile
from qmf_codegen.packages import file_names, package_names
from qmf_codegen.python.formatting import format_modules
from qmf_codegen.python.rendering import render
from qmf_codegen.reading import read_all

#: Formats of one file per schema: its suffix, and the function that makes its text.
_DOCUMENTS: Mapping[Format, tuple[str, Callable[[Schema, str], str]]] = {
    Format.XML: (".xml", xml.document),
    Format.JSON_SCHEMA: (".json", json_schema.document),
    Format.MARKDOWN: (".md", markdown.document),
}


def generate(
    paths: Sequence[Path], warn: Callable[[SchemaProblem], None] | None = None, format: Format = Format.PYTHON
) -> list[GeneratedFile]:
    """Generate all files for some schema files, in memory.

    The result depends only on the files' names and contents.

    Args:
        paths: schema files; a package, or a document of the same name, is made from each.
        warn: called with each warning about a schema.
        format: what is made.

    Raises:
        SchemaError: schemas are invalid; holds the problems of all of them.
        CodegenError: two files would become the same package or document; or ruff is not installed.
        OSError: a file cannot be read.
    """
    if format is Format.PYTHON:
        packages = package_names(paths)
        modules = {
            str(Path(packages[source.path], name)): text
            for source in read_all(paths, warn)
            for name, text in render(source.schema, source.path.name).items()
        }
        return [GeneratedFile(Path(path), text) for path, text in format_modules(modules).items()]
    suffix, document = _DOCUMENTS[format]
    names = file_names(paths, suffix)
    return [
        GeneratedFile(Path(names[source.path]), document(source.schema, source.path.name))
        for source in read_all(paths, warn)
    ]
