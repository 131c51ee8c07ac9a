"""`qmf-acl`: checks files of access control, explains decisions, tests them, and compares two files."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import attrs

from qmf._completion import add_completion_option
from qmf._version import __version__
from qmf.acl.changes import OTHER_USER, Difference, differences
from qmf.acl.explanation import explain
from qmf.acl.findings import findings
from qmf.acl.proposals import propose
from qmf.acl.reader import AclError, read
from qmf.acl.ruleset import RuleSet
from qmf.acl.words import BROKER, WEB, Vocabulary
from qmf.errors import CallerError
from qmf.tools.acl.cases import parse_cases, parse_lookup
from qmf.tools.connecting import FAILED, OK, USAGE, ToolParser

PROG = "qmf-acl"

CHECK_HELP = "find errors, rules that never match or decide, groups without use, and an open default"
WHY_HELP = (
    "what a file decides: the rule, those before it with the reason why they don't match, and what would allow it"
)
TEST_HELP = "compare decisions with expected ones: lines such as `allow bob@QPID consume queue name=q`"
PROPOSE_HELP = "write rules that allow what a file of cases has, such as one of `qmf-broker --acl-record`"
DIFF_HELP = "who may do more, and who less, after a change of a file"


class _FileError(CallerError):
    """A file can't be read."""


def check(options: argparse.Namespace) -> int:
    """Run ``check``."""
    faults = 0
    for file in options.files:
        try:
            found = findings(_read(file, _vocabulary(options)))
        except (AclError, _FileError) as error:
            print(error)
            faults += 1
            continue
        for problem in found:
            print(problem)
        faults += bool(found) and options.strict
    return FAILED if faults else OK


def why(options: argparse.Namespace) -> int:
    """Run ``why``."""
    vocabulary = _vocabulary(options)
    groups = frozenset(options.groups.replace(",", " ").split())
    lookup = attrs.evolve(parse_lookup(options.question, vocabulary), groups=groups)
    found = explain(_read(options.file, vocabulary), lookup)
    print("\n".join(found.lines()))
    return OK if found.decision.allows else FAILED


def test(options: argparse.Namespace) -> int:
    """Run ``test``."""
    vocabulary = _vocabulary(options)
    rules = _read(options.file, vocabulary)
    cases = list(parse_cases(_text(options.cases), str(options.cases), vocabulary))
    failures = 0
    for case in cases:
        decision = rules.decide(case.lookup)
        if decision.allows is not case.allowed:
            failures += 1
            print(f"{options.cases}:{case.line}: {case.lookup}: {decision}")
    print(f"{len(cases)} cases, {failures} failed")
    return FAILED if failures else OK


def diff(options: argparse.Namespace) -> int:
    """Run ``diff``."""
    vocabulary = _vocabulary(options)
    found = list(differences(_read(options.old, vocabulary), _read(options.new, vocabulary)))
    _print_differences("may now", [item for item in found if item.gained])
    _print_differences("may no longer", [item for item in found if not item.gained])
    if not found:
        print("no difference found")
    return FAILED if found and options.exit_code else OK


def propose_rules(options: argparse.Namespace) -> int:
    """Run ``propose``."""
    cases = parse_cases(_text(options.cases), str(options.cases))
    print(propose([case.lookup for case in cases if case.allowed]), end="")
    return OK


def _print_differences(verb: str, found: Iterable[Difference]) -> None:
    for item in found:
        lookup = item.lookup
        user = "everybody who is not named" if lookup.user == OTHER_USER else lookup.user
        words = [
            user,
            verb,
            lookup.action,
            lookup.object_type,
            *(f"{name}={value}" for name, value in item.conditions()),
        ]
        print(f"{' '.join(words)}\n    old: {item.old}\n    new: {item.new}")


def _vocabulary(options: argparse.Namespace) -> Vocabulary:
    return WEB if options.web else BROKER


def _read(file: Path, vocabulary: Vocabulary) -> RuleSet:
    return read(_text(file), str(file), vocabulary=vocabulary)


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise _FileError(f"cannot read {file}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise _FileError(f"cannot read {file}: line {line} is not UTF-8") from error


def parser() -> ToolParser:
    """The parser of the command line."""
    made = ToolParser(
        PROG, description="Look at files of access control (ACL, version 2), as qpidd and qmf-broker read them."
    )
    add_completion_option(made)
    made.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = made.add_subparsers(metavar="COMMAND", required=True, parser_class=argparse.ArgumentParser)

    def add(name: str, text: str, run: Callable[[argparse.Namespace], int]) -> Callable[..., object]:
        command = commands.add_parser(name, help=text, description=f"{text}.", allow_abbrev=False)
        command.set_defaults(run=run)
        if run is not propose_rules:
            command.add_argument("--web", action="store_true", help="the file is one of qmf-web, with its words")
        return command.add_argument

    option = add("check", CHECK_HELP, check)
    option("--strict", action="store_true", help="exit with 1 for findings as well, not for errors alone")
    option("files", type=Path, nargs="+", metavar="FILE")
    option = add("why", f"{WHY_HELP}; exits with 1 if it is denied", why)
    option("file", type=Path, metavar="FILE")
    option("--groups", default="", metavar="NAMES", help="groups that the user's access token names")
    option("question", nargs="+", metavar="WORD", help="user action object [name=...] [property=...]")
    option = add("test", f"{TEST_HELP}; exits with 1 if one differs", test)
    option("file", type=Path, metavar="FILE")
    option("cases", type=Path, metavar="CASES")
    option = add("propose", PROPOSE_HELP, propose_rules)
    option("cases", type=Path, metavar="CASES")
    option = add("diff", DIFF_HELP, diff)
    option("--exit-code", action="store_true", help="exit with 1 if there is a difference")
    option("old", type=Path, metavar="OLD")
    option("new", type=Path, metavar="NEW")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `qmf-acl`; returns its exit code."""
    options = parser().parse_args(arguments)
    try:
        result: int = options.run(options)
    except AclError as error:
        print(error, file=sys.stderr)
        return USAGE
    except CallerError as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return USAGE
    return result
