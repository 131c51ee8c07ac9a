"""`qmf-codegen`: XML schema in, typed Python classes out.

One run goes through passes, each in its own module: read the schemas (`reading`), name the packages (`packages`) and
what is in them (`naming`), make the values that templates show (`views`), render (`rendering`), check that the result
is Python (`checking`), and compare it with what is there (`comparing`) or write it (`writing`). `generator` drives
them, `cli` is the command line. Templates hold layout only; words come from `filters`.
"""

from __future__ import annotations

from qmf_codegen.generator import GeneratedFile, generate

__all__ = ["GeneratedFile", "generate"]
