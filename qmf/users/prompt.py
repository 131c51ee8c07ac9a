"""A password that somebody types, or a program writes to the standard input: never an argument, which `ps` shows."""

from __future__ import annotations

import getpass
import sys

from qmf.users.verifiers import UsersError


def read_new_password(name: str) -> str:
    """A new password, typed twice on a terminal, or the first line of the standard input.

    Args:
        name: of its user, for the prompt; may be empty.

    Raises:
        UsersError: it is empty, or both differ.
    """
    password = _typed_twice(name) if sys.stdin.isatty() else sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise UsersError("the password is empty")
    return password


def _typed_twice(name: str) -> str:
    whose = f" of {name}" if name else ""
    try:
        password = getpass.getpass(f"Password{whose}: ")
        again = getpass.getpass("Once more: ")
    except EOFError:
        raise UsersError("no password was typed") from None
    if password != again:
        raise UsersError("the two passwords differ")
    return password
