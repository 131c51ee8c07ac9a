"""`qmf-users`: keeps a file of users, for `qmf-broker --users` and `qmf-web --users`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from qmf._completion import add_completion_option
from qmf._version import __version__
from qmf.tools.connecting import FAILED, OK, USAGE, ToolParser
from qmf.tools.tables import TextColumn, table
from qmf.users.files import UsersFile, check_name
from qmf.users.prompt import read_new_password
from qmf.users.verifiers import UsersError, describe_verifier, enable_verifier, hash_password, scram_text

PROG = "qmf-users"

_KINDS: dict[str, Callable[[str], str]] = {"scram": scram_text, "scrypt": hash_password}


def add(options: argparse.Namespace) -> int:
    """Run ``add``."""
    check_name(options.name)
    file = UsersFile(options.file)
    if options.name in file.users:
        raise UsersError(
            f"{options.file}: there is a user {options.name!r} already; `{PROG} passwd` changes the password"
        )
    return _write_password(file, options)


def passwd(options: argparse.Namespace) -> int:
    """Run ``passwd``."""
    file = _open(options)
    return _write_password(file, options)


def remove(options: argparse.Namespace) -> int:
    """Run ``remove``."""
    file = _open(options)
    file.remove(options.name)
    file.write()
    return OK


def disable(options: argparse.Namespace) -> int:
    """Run ``disable``."""
    return _enable(options, False)


def enable(options: argparse.Namespace) -> int:
    """Run ``enable``."""
    return _enable(options, True)


def list_users(options: argparse.Namespace) -> int:
    """Run ``list``."""
    users = _existing(options.file).users
    rows = [(name, *describe_verifier(text)) for name, text in users.items()]
    print("\n".join(table("Users", [TextColumn("user"), TextColumn("password"), TextColumn("state")], rows)))
    return OK


def check(options: argparse.Namespace) -> int:
    """Run ``check``."""
    faults = 0
    for name, text in _existing(options.file).users.items():
        kind, _ = describe_verifier(text)
        if kind == "plain text":
            print(f"{options.file}: the password of {name} is plain text; `{PROG} passwd` replaces it")
            faults += 1
    return FAILED if faults else OK


def _write_password(file: UsersFile, options: argparse.Namespace) -> int:
    file.set(options.name, _KINDS[options.kind](read_new_password(options.name)))
    file.write()
    return OK


def _enable(options: argparse.Namespace, enabled: bool) -> int:
    file = _open(options)
    file.set(options.name, enable_verifier(file.users[options.name], enabled))
    file.write()
    return OK


def _open(options: argparse.Namespace) -> UsersFile:
    """The file of the options, which has their user."""
    file = _existing(options.file)
    if options.name not in file.users:
        raise UsersError(f"{options.file}: there is no user {options.name!r}")
    return file


def _existing(path: Path) -> UsersFile:
    if not path.exists():
        raise UsersError(f"{path}: no such file")
    return UsersFile(path)


def parser() -> ToolParser:
    """The parser of the command line."""
    made = ToolParser(
        PROG,
        description="Keep a file of users. Passwords are typed, or read from the standard input; the file has SCRAM "
        "keys, with which nobody can log in. A running broker reads it again on SIGHUP.",
    )
    add_completion_option(made)
    made.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = made.add_subparsers(metavar="COMMAND", required=True, parser_class=argparse.ArgumentParser)
    for name, text, run, has_user in (
        ("add", "add a user; makes the file if there is none", add, True),
        ("passwd", "change a user's password", passwd, True),
        ("list", "list the users, without what their passwords are checked with", list_users, False),
        ("disable", "refuse a user's logins, and keep the password", disable, True),
        ("enable", "accept a user's logins again", enable, True),
        ("remove", "remove a user", remove, True),
        ("check", "find passwords that are plain text; exits with 1 if there are any", check, False),
    ):
        command = commands.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", allow_abbrev=False)
        command.set_defaults(run=run)
        command.add_argument("file", type=Path, metavar="FILE")
        if has_user:
            command.add_argument("name", metavar="NAME")
        if name in ("add", "passwd"):
            command.add_argument(
                "--kind",
                choices=sorted(_KINDS),
                default="scram",
                help="what the file has: SCRAM keys, or a scrypt hash, for PLAIN alone (%(default)s)",
            )
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `qmf-users`; returns its exit code."""
    options = parser().parse_args(arguments)
    try:
        result: int = options.run(options)
    except UsersError as error:
        print(f"{PROG}: {error}", file=sys.stderr)
        return USAGE
    return result
