"""Records what clients ask for, each question once, as a file of cases: `qmf-acl propose` makes rules from it."""

from __future__ import annotations

import logging
import os
import re
from pathlib import Path

from qmf.acl.rules import Lookup
from qmf.errors import CallerError

log = logging.getLogger("qmf.broker.access")

#: Questions that are recorded by one broker: who invents names must not fill the disk.
MAX_QUESTIONS = 100_000
#: What a file of cases cannot have.
_BLANK = re.compile(r"\s")


class AccessRecordError(CallerError):
    """The file of a recording cannot be written; the text names it and the reason."""


class AccessRecord:
    """A file of cases, to which questions are appended. The file of an earlier recording is continued."""

    def __init__(self, file: Path) -> None:
        """Read the file, or create it; its owner alone may read it.

        Raises:
            AccessRecordError: it can't be written, or read where it exists.
        """
        self._path = file
        try:
            with os.fdopen(os.open(file, os.O_RDWR | os.O_CREAT, 0o600), "r", encoding="utf-8") as opened:
                self._seen = {line.rstrip("\n") for line in opened}
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not UTF-8"
            raise AccessRecordError(f"cannot record to {file}: {reason}") from error
        self._full = False

    def add(self, lookup: Lookup) -> None:
        """Somebody asks for something. Never raises: what cannot be written is logged."""
        line = case_line(lookup)
        if line in self._seen or self._full:
            return
        if len(self._seen) >= MAX_QUESTIONS:
            self._full = True
            log.warning("%s: %d different requests are recorded, and no more", self._path, MAX_QUESTIONS)
            return
        self._seen.add(line)
        try:
            with self._path.open("a", encoding="utf-8") as opened:
                opened.write(f"{line}\n")
        except OSError as error:
            self._full = True
            log.error("%s: the recording ends: %s", self._path, error)


def case_line(lookup: Lookup) -> str:
    """A question as a line of a file of cases; a comment if it has names that no rule could have."""
    words = [f"name={lookup.name}"] if lookup.name else []
    words += [f"{name}={value}" for name, value in (lookup.properties or {}).items() if value]
    parts = ["allow", lookup.user, lookup.action, lookup.object_type, *words]
    if any(_BLANK.search(part) or not part.isprintable() for part in parts):
        return f"# no rule can name it: {' '.join(ascii(part) for part in parts[1:])}"
    return " ".join(parts)
