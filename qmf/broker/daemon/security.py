"""What the operator is told about users, passwords and TLS of the broker; making hashes for the file of users."""

from __future__ import annotations

from collections.abc import Mapping

from qmf.connecting.loopback import is_loopback
from qmf.users.files import check_name
from qmf.users.prompt import read_new_password
from qmf.users.users import Users
from qmf.users.verifiers import hash_password


def warnings(host: str, *, users: Mapping[str, str] | None, tls: bool, file: str | None) -> list[str]:
    """What is unsafe about a broker, one line each.

    Args:
        host: the address that it listens on.
        users: passwords by user, or None where everybody may connect.
        tls: only TLS is accepted.
        file: of the users.
    """
    found = []
    plain = () if users is None else Users(users).plain
    if plain:
        count = f"the password of {plain[0]} is" if len(plain) == 1 else f"the passwords of {len(plain)} users are"
        found.append(f"{file}: {count} plain text; qmf-users passwd {file} NAME replaces one")
    missing = [
        text
        for absent, text in (
            (users is None, "without users (--users FILE), so that anybody who reaches it may use it"),
            (not tls, "without TLS (--tls-cert FILE), so that passwords and messages can be read on the way"),
        )
        if absent
    ]
    if missing and not is_loopback(host):
        found.append(f"listening on {host or 'all addresses'} {', and '.join(missing)}")
    return found


def print_hash(name: str) -> None:
    """Print the line of a file of users, for a password that is typed, or the first line of the standard input.

    Args:
        name: of the user; empty: the hash alone is printed.

    Raises:
        UsersError: the name or the password cannot be used.
    """
    if name:
        check_name(name)
    password = read_new_password(name)
    print(f"{name}:{hash_password(password)}" if name else hash_password(password))
