"""The command line of `qmf-codegen`.

Exit codes: 0 all done, or everything is fresh; 1 a schema is invalid, or `--check` found something stale; 2 the command
line is wrong, a file cannot be found, read or written, or an agent cannot be reached; 130 ended by Ctrl-C.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from qmf._completion import add_completion_option
from qmf._option_values import seconds_between
from qmf._version import __version__
from qmf.connecting import add_connection_options, read_connections
from qmf.errors import QmfError, SchemaError, SchemaProblem
from qmf_codegen.comparing import changes
from qmf_codegen.errors import CodegenError
from qmf_codegen.outputs import Format, GeneratedFile
from qmf_codegen.writing import write

OK, INVALID, USAGE, INTERRUPTED = 0, 1, 2, 130

#: The output that stands for the standard output.
STDOUT = "-"

DEFAULT_BROKER = "amqp://127.0.0.1:5672"

#: Seconds to wait for an answer of the agent, by default.
DEFAULT_TIMEOUT = 10.0


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command.

    Args:
        argv: arguments without the program's name; None takes them from the process.

    Returns:
        the exit code.
    """
    parser = build_parser()
    try:
        options = parser.parse_args(argv)
        _check_usage(parser, options)
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else USAGE
    try:
        if options.from_agent is not None:
            return _from_agent(options)
        return _run(options.schema, options.output or "", Format(options.format), check=options.check)
    except SchemaError as error:
        print(error, file=sys.stderr)
        return INVALID
    except QmfError as error:
        return _fail(str(error))
    except BrokenPipeError:
        raise  # nobody reads on, e.g. `head`: the command ends without a message
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _fail(f"{where}{error.strerror or error}")
    except KeyboardInterrupt:
        print("qmf-codegen: interrupted", file=sys.stderr)
        return INTERRUPTED


def build_parser() -> argparse.ArgumentParser:
    """The parser of the command line."""
    parser = argparse.ArgumentParser(
        prog="qmf-codegen",
        description="Generate typed Python packages, and documents, from QMF schemas.",
        epilog="Exit codes: 0 done, 1 an invalid schema or stale files, 2 wrong usage, or a file or agent that "
        "cannot be reached, 130 ended by Ctrl-C.",
        allow_abbrev=False,
    )
    parser.add_argument("schema", nargs="*", type=Path, metavar="SCHEMA.xml", help="schema file; becomes one package")
    parser.add_argument(
        "-o",
        "--output",
        metavar="DIR",
        help="where packages and documents are written (default: here); - writes one document to the standard output. "
        "With --from-agent, a file or directory (default: standard output); a path that does not exist becomes a "
        "directory if it ends with / or if there are several packages",
    )
    parser.add_argument(
        "--format",
        choices=[item.value for item in Format],
        default=Format.PYTHON.value,
        help="what to generate from each schema: a Python package, canonical XML, a JSON Schema (draft 2020-12), or a "
        "reference page (default: %(default)s)",
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; show a diff of stale files and end with 1 if there are any"
    )
    agent = parser.add_argument_group("instead of schema files")
    agent.add_argument(
        "--from-agent",
        metavar="NAME",
        help="write the schemas that a live agent publishes as XML; NAME is its name, a unique part of it, or `broker`",
    )
    agent.add_argument("--package", metavar="NAME", help="only this package")
    agent.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds_between(0.01, 3600),
        help="longest wait for an answer, in seconds (default: 10)",
    )
    connecting = parser.add_argument_group("connecting, for --from-agent")
    add_connection_options(connecting, broker=f"broker to connect to (default: {DEFAULT_BROKER})")
    # Only `--from-agent` uses these.
    parser.set_defaults(agent_options=[*agent._group_actions[1:], *connecting._group_actions])
    add_completion_option(parser)
    parser.add_argument("--version", action="version", version=f"qmf-codegen {__version__}")
    return parser


def _check_usage(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """End with a message if options don't fit together; set defaults of the others."""
    if options.from_agent is not None:
        if options.schema or options.check:
            parser.error("--from-agent cannot be combined with schema files or --check")
        if options.format not in (Format.PYTHON.value, Format.XML.value):
            parser.error("--from-agent writes XML only; generate other formats from that file")
        return
    alone = [item.option_strings[-1] for item in options.agent_options if getattr(options, item.dest)]
    if alone:
        parser.error(f"{', '.join(alone)}: only with --from-agent")
    if not options.schema:
        parser.error("name a schema file, or an agent with --from-agent")
    if options.output == STDOUT and (options.format == Format.PYTHON.value or options.check):
        parser.error("-o - writes one document: choose --format xml, json-schema or markdown, without --check")


def _run(schemas: Sequence[Path], output: str, format: Format, *, check: bool) -> int:
    # Imported here: --help needs none of the libraries that generate.
    from qmf_codegen.generator import generate

    # Overlapping patterns of the shell may name a file twice.
    files = generate(list(dict.fromkeys(schemas)), _warn, format)
    if output == STDOUT:
        if len(files) != 1:
            raise CodegenError("-o - takes one schema file")
        sys.stdout.write(files[0].text)
        return OK
    found = changes(files, Path(output))
    if not check:
        write(found, print)
        return OK
    for change in found:
        sys.stdout.write(change.diff())
    return INVALID if found else OK


def _from_agent(options: argparse.Namespace) -> int:
    # Only this command needs the console and the bus.
    from qmf_codegen.from_agent.schema_files import read_agent

    target = read_connections(options, prog="qmf-codegen", default=DEFAULT_BROKER).target
    result = read_agent(
        target.make_bus(),
        options.from_agent,
        package=options.package,
        domain=target.domain,
        timeout=options.timeout or DEFAULT_TIMEOUT,
    )
    output = options.output or STDOUT
    whole = _is_directory(output, len(result.files))
    if not whole and len(result.files) != 1:
        names = ", ".join(file.path.stem for file in result.files)
        raise CodegenError(
            f"the agent has several packages ({names}): choose one with --package, or a directory with -o DIR/"
        )
    for note in result.notes:
        print(f"note: {note}", file=sys.stderr)
    path = Path(output)
    if whole:
        write(changes(result.files, path), print)
    elif output == STDOUT:
        sys.stdout.write(result.files[0].text)
    else:
        write(changes([GeneratedFile(Path(path.name), result.files[0].text)], path.parent), print)
    for problem in result.problems:
        print(problem, file=sys.stderr)
    return INVALID if result.problems else OK


def _is_directory(output: str, packages: int) -> bool:
    """Whether `output` is a directory, or will be one: where it ends with a slash, or several packages go there."""
    path = Path(output)
    if path.exists() or output == STDOUT:
        return path.is_dir()
    # Several packages do not fit into one file.
    return output.endswith("/") or (packages > 1 and path.suffix != ".xml")


def _warn(problem: SchemaProblem) -> None:
    print(f"{problem.file}:{problem.line}: warning: {problem.message}", file=sys.stderr)


def _fail(message: str) -> int:
    print(f"qmf-codegen: {message}", file=sys.stderr)
    return USAGE
