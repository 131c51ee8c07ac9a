"""The entries of a lake's transaction log, and the files that result from them. Pure: no file is touched here.

::

    00000000000000000042.json              entry 42: files added and files removed
    00000000000000001000.checkpoint.json   all files that were in the lake after entry 1000

A checkpoint replaces all entries up to its number: reading the log costs as much as happened since the checkpoint, and
old entries can be deleted.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

import attrs

#: Entries from one checkpoint to the next.
CHECKPOINT_INTERVAL = 1000

_NAME = re.compile(r"(\d{20})(\.checkpoint)?\.json")


@attrs.frozen
class LogEntry:
    """One commit.

    Attributes:
        number: its place in the order, from 1 without a gap.
        added: paths of the files that the commit added, with their numbers of rows.
        removed: paths of the files that it removed; where `moved` is true, their rows are in the added files.
        moved: the added files hold rows that were in the lake before: a stream skips them.
    """

    number: int
    added: dict[str, int]
    removed: tuple[str, ...] = ()
    moved: bool = False

    @classmethod
    def parse(cls, number: int, text: str) -> LogEntry:
        """Read the content of an entry's file."""
        content = json.loads(text)
        return cls(number, content["added"], tuple(content["removed"]), content["moved"])

    def text(self) -> str:
        """The content of its file."""
        return json.dumps({"added": self.added, "removed": self.removed, "moved": self.moved})


def entry_name(number: int) -> str:
    """The name of an entry's file."""
    return f"{number:020d}.json"


def checkpoint_name(number: int) -> str:
    """The name of a checkpoint's file."""
    return f"{number:020d}.checkpoint.json"


def number_of(name: str, *, checkpoint: bool = False) -> int | None:
    """The number in the name of an entry's file, or of a checkpoint's; None for other names."""
    match = _NAME.fullmatch(name)
    return int(match[1]) if match and bool(match[2]) is checkpoint else None


def apply(present: dict[str, int], entries: Iterable[LogEntry]) -> dict[str, int]:
    """Apply entries, in order, to the files of a lake with their numbers of rows; changes and returns that dict."""
    for entry in entries:
        present.update(entry.added)
        for path in entry.removed:
            present.pop(path, None)
    return present


def checkpoint_text(present: Mapping[str, int]) -> str:
    """The content of a checkpoint's file."""
    return json.dumps(present)


def parse_checkpoint(text: str) -> dict[str, int]:
    """Read the content of a checkpoint's file: files in the order in which they were added, with their rows."""
    present: dict[str, int] = json.loads(text)
    return present


def replay(named: Iterable[tuple[str, str]]) -> dict[str, int]:
    """The files in a lake, with their numbers of rows.

    Args:
        named: name and content of all files of the log, in any order.
    """
    texts = dict(named)
    last = max((number for name in texts if (number := number_of(name, checkpoint=True)) is not None), default=0)
    present = parse_checkpoint(texts[checkpoint_name(last)]) if last else {}
    numbers = sorted(number for name in texts if (number := number_of(name)) is not None and number > last)
    return apply(present, (LogEntry.parse(number, texts[entry_name(number)]) for number in numbers))
