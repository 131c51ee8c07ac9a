"""Files of users: lines ``name:password`` or ``name:hash``; empty lines and lines that start with ``#`` are ignored."""

from __future__ import annotations

from pathlib import Path

from qmf._atomic_files import PRIVATE, replace_file
from qmf._text_files import read_text
from qmf.users.verifiers import UsersError, parse_verifier


def read_users(path: str | Path) -> dict[str, str]:
    """Read a file of users.

    Returns:
        passwords, hashes or keys by user.

    Raises:
        UsersError: the file cannot be read, has no users, or a line is invalid.
    """
    users = _parse_lines(path, _read_lines(path))
    if not users:
        raise UsersError(f"{path}: no users")
    return users


class UsersFile:
    """A file of users that is changed: its other lines stay as they are, and it is replaced in one step."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Args:
            path: of the file; one that does not exist has no users.

        Raises:
            UsersError: the file cannot be read, or a line is invalid.
        """
        self._path = path
        self._lines = _read_lines(path) if path.exists() else []
        self._users = _parse_lines(path, self._lines)

    @property
    def users(self) -> dict[str, str]:
        """Passwords, hashes or keys by user."""
        return dict(self._users)

    def set(self, name: str, text: str) -> None:
        """Add a user, or change its line.

        Args:
            name: of the user.
            text: a verifier (`qmf.users.verifiers`).

        Raises:
            UsersError: a file could not have this name.
        """
        check_name(name)
        line = f"{name}:{text}"
        if name in self._users:
            self._lines = [line if _name_of(old) == name else old for old in self._lines]
        else:
            self._lines.append(line)
        self._users[name] = text

    def remove(self, name: str) -> None:
        """Remove a user that is in the file."""
        del self._users[name]
        self._lines = [line for line in self._lines if _name_of(line) != name]

    def write(self) -> None:
        """Replace the file, which its owner alone may read.

        Raises:
            UsersError: it cannot be written; it is as it was then.
        """
        content = "".join(f"{line}\n" for line in self._lines).encode()
        try:
            replace_file(self._path, content, mode=PRIVATE, sync=True)
        except OSError as error:
            raise UsersError(f"{self._path}: {error.strerror}") from error


def check_name(name: str) -> None:
    """Refuse what cannot be the name of a user.

    Raises:
        UsersError: it is empty, has a colon or a line's end, or begins a comment.
    """
    if not name or ":" in name or name.startswith("#") or name != name.strip() or not name.isprintable():
        raise UsersError(f"{name!r} cannot be the name of a user: no colon, no blanks at the ends, no # in front")


def _read_lines(path: str | Path) -> list[str]:
    return read_text(path, UsersError).splitlines()


def _parse_lines(path: str | Path, lines: list[str]) -> dict[str, str]:
    users: dict[str, str] = {}
    for number, line in enumerate(lines, 1):
        name = _name_of(line)
        if name is None:
            continue
        text = line.partition(":")[2]
        if not name or not text:
            raise UsersError(f"{path}:{number}: expected name:password")
        if name in users:
            raise UsersError(f"{path}:{number}: user {name!r} is defined twice")
        try:
            parse_verifier(text)
        except UsersError as error:
            raise UsersError(f"{path}:{number}: user {name!r}: {error}") from error
        users[name] = text
    return users


def _name_of(line: str) -> str | None:
    """The user of a line; None for a comment or an empty line."""
    return None if not line.strip() or line.startswith("#") else line.partition(":")[0]
