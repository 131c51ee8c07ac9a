"""Sixth pass: what was rendered is Python, and in the form that was promised.

A fault here is one of the generator, not of the schema; better found before anything is written.
"""

from __future__ import annotations

from qmf_codegen.errors import CodegenError


def check(name: str, text: str) -> None:
    """Check one rendered module.

    Raises:
        CodegenError: it does not compile, or its end or a line's end is not clean.
    """
    try:
        compile(text, name, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise CodegenError(f"the generator made an invalid module {name}: {error}") from error
    if not text.endswith("\n") or text.endswith("\n\n"):
        raise CodegenError(f"the generator made a module that does not end with one line end: {name}")
    # Not splitlines: strings and docstrings of the schema may hold what that takes for the end of a line.
    for number, line in enumerate(text.split("\n"), 1):
        if line.endswith((" ", "\t", "\r")):
            raise CodegenError(f"the generator left spaces at the end of line {number} of {name}")
