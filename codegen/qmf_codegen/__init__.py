"""`qmf-codegen`: XML schema in, typed Python classes out; or a reference page, a JSON Schema, canonical XML.

A run goes through passes, each in its own module: read the schemas (`reading`), make the text of their Python packages
(`python`) or of documents (`formats`), and compare it with the files on disk (`comparing`) or write it (`writing`).
`generator` drives them, `cli` is the command line, and `from_agent` reads schemas from a live agent instead of files.
"""

from __future__ import annotations

from qmf_codegen.generator import Format, GeneratedFile, generate

__all__ = ["Format", "GeneratedFile", "generate"]
