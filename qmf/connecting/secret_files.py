"""Files whose first line is a secret: a password or an access token. The secret is in no error."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import attrs

from qmf.errors import CallerError


class PasswordError(CallerError):
    """There is no password or token, or its source cannot be read; the message says where it was looked for."""


def read_secret(path: Path, what: str, warn: Callable[[str], None] = lambda _: None) -> str:
    """The first line of a file.

    Args:
        path: of the file.
        what: it is, for messages: ``password`` or ``token``.
        warn: takes a line about a file that others may read.

    Raises:
        PasswordError: the file cannot be read, or its first line is empty.
    """
    try:
        with path.open(encoding="utf-8") as file:
            mode = os.fstat(file.fileno()).st_mode
            secret = file.readline().rstrip("\r\n")
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise PasswordError(f"cannot read the {what} file {path}: {reason}") from None
    except UnicodeDecodeError:
        raise PasswordError(f"the {what} file {path} is not UTF-8") from None
    if not secret:
        raise PasswordError(f"the first line of the {what} file {path} is empty")
    if stat.S_ISREG(mode) and mode & (stat.S_IRGRP | stat.S_IROTH):
        warn(f"other users can read the {what} file {path}: chmod 600 {path}")
    return secret


@attrs.frozen
class TokenFile:
    """A file with an access token, which is read for each connection: whoever gets new tokens replaces it.

    Attributes:
        path: of the file.
    """

    path: Path

    def __call__(self) -> str:
        """The token as it is in the file now.

        Raises:
            PasswordError: see `read_secret`.
        """
        return read_secret(self.path, "token").strip()
