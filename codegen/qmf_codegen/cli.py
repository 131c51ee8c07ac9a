"""The command line of `qmf-codegen`.

Exit codes: 0 all done, or everything is fresh; 1 a schema is invalid, or `--check` found something stale; 2 the command
line is wrong, or a file cannot be found, read or written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from qmf._version import __version__
from qmf.errors import Problem, SchemaError
from qmf_codegen.comparing import changes
from qmf_codegen.errors import CodegenError
from qmf_codegen.generator import generate
from qmf_codegen.writing import write

OK, INVALID, USAGE = 0, 1, 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: arguments without the program's name; None takes them from the process.

    Returns:
        the exit code.
    """
    try:
        options = _parser().parse_args(argv)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else USAGE
    try:
        return _run(options.schema, options.output, check=options.check)
    except SchemaError as error:
        print(error, file=sys.stderr)
        return INVALID
    except CodegenError as error:
        return _fail(str(error))
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _fail(f"{where}{error.strerror or error}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="qmf-codegen", description="Generate Python packages from QMF schemas.")
    parser.add_argument("schema", nargs="+", type=Path, metavar="SCHEMA.xml", help="schema file; becomes one package")
    parser.add_argument(
        "-o", "--output", type=Path, default=Path(), metavar="DIR", help="where packages are written; default: here"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; show what is stale as a diff and end with 1 if anything is"
    )
    parser.add_argument("--version", action="version", version=f"qmf-codegen {__version__}")
    return parser


def _run(schemas: Sequence[Path], output: Path, *, check: bool) -> int:
    # Named twice by patterns of the shell that overlap: once is meant.
    files = generate(list(dict.fromkeys(schemas)), _warn)
    found = changes(files, output)
    if not check:
        write(found, print)
        return OK
    for change in found:
        sys.stdout.write(change.diff())
    return INVALID if found else OK


def _warn(problem: Problem) -> None:
    print(f"{problem.file}:{problem.line}: warning: {problem.message}", file=sys.stderr)


def _fail(message: str) -> int:
    print(f"qmf-codegen: {message}", file=sys.stderr)
    return USAGE
