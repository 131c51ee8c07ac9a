"""`qmf-codegen`: XML schema in, typed Python classes out; or a reference page, a JSON Schema, canonical XML.

A run goes through passes, each in its own module: read the schemas (`reading`), make the text of their Python packages
(`python`) or of documents (`formats`), and compare it with the files on disk (`comparing`) or write it (`writing`).
`generator` drives them, `cli` is the command line, and `from_agent` reads schemas from a live agent instead of files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from qmf._lazy import lazy_exports

if TYPE_CHECKING:
    from qmf_codegen.generator import generate
    from qmf_codegen.outputs import Format, GeneratedFile
else:
    # `qmf-codegen --help` needs none of the libraries that generate.
    __getattr__, __dir__ = lazy_exports(
        __name__, {"qmf_codegen.generator": "generate", "qmf_codegen.outputs": "Format GeneratedFile"}
    )

__all__ = ["Format", "GeneratedFile", "generate"]
