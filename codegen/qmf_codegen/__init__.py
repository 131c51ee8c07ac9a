"""`qmf-codegen`: XML schema in, typed Python classes out; or a reference page, a JSON Schema, canonical XML.

One run goes through passes, each in its own module: read the schemas (`reading`), name the packages (`packages`) and
what is in them (`naming`), make the values that templates show (`views`, `agent_views`, `console_views`), render
(`rendering`), check that the result is Python (`checking`), and compare it with what is there (`comparing`) or write it
(`writing`). `generator` drives them, `cli` is the command line. Templates hold layout only; words come from `filters`.

Other formats than Python have a module each in `formats`. `live` learns schemas from agents rather than from files, and
`assembling` puts them together.
"""

from __future__ import annotations

from qmf_codegen.generator import Format, GeneratedFile, generate

__all__ = ["Format", "GeneratedFile", "generate"]
