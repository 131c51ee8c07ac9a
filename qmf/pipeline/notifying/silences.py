"""Silences: who wants no notifications of which alerts, from when until when, and why; and their file.

The file has JSON lines, each a version of a silence. It is written by commands, and read by a running job.
"""

from __future__ import annotations

import datetime
import enum
import fcntl
import json
import os
import uuid
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import attrs

from qmf._text_files import file_version
from qmf.pipeline.errors import LakeError, PipelineError, lake_errors
from qmf.pipeline.notifying.matchers import Matcher, all_match
from qmf.views.times import parse_instant

#: The name of the file in the folder of the notifications' state.
SILENCES = "silences.jsonl"

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


class SilenceState(enum.Enum):
    """What a silence does at one time."""

    PENDING = "pending"
    ACTIVE = "active"
    EXPIRED = "expired"


@attrs.frozen(kw_only=True)
class Silence:
    """A silence of alerts whose labels match all matchers, in the version of a time. Times are ns since 1970."""

    id: str
    matchers: tuple[Matcher, ...]
    starts_ns: int
    ends_ns: int
    created_by: str
    comment: str
    updated_ns: int

    def state(self, now: int) -> SilenceState:
        """Pending before its start, expired from its end on."""
        if now >= self.ends_ns:
            return SilenceState.EXPIRED
        return SilenceState.PENDING if now < self.starts_ns else SilenceState.ACTIVE

    def expire(self, now: int) -> Silence:
        """The version that ends now; one that did not start yet never does."""
        return attrs.evolve(self, starts_ns=min(self.starts_ns, now), ends_ns=min(self.ends_ns, now), updated_ns=now)

    def to_json(self) -> dict[str, Any]:
        """As in Alertmanager's API."""
        return {
            "id": self.id,
            "matchers": [matcher.to_json() for matcher in self.matchers],
            "startsAt": format_time(self.starts_ns),
            "endsAt": format_time(self.ends_ns),
            "updatedAt": format_time(self.updated_ns),
            "createdBy": self.created_by,
            "comment": self.comment,
        }

    @classmethod
    def from_json(cls, content: Mapping[str, Any]) -> Silence:
        """The reverse of `to_json`; raises `KeyError`, `TypeError` or `ValueError` for what is none."""
        return cls(
            id=str(content["id"]),
            matchers=tuple(Matcher.from_json(item) for item in content["matchers"]),
            starts_ns=parse_time(content["startsAt"]),
            ends_ns=parse_time(content["endsAt"]),
            created_by=str(content["createdBy"]),
            comment=str(content["comment"]),
            updated_ns=parse_time(content["updatedAt"]),
        )


def find_silence(silences: Iterable[Silence], labels: Mapping[str, str], now: int) -> Silence | None:
    """The first active silence that matches, or None."""
    for silence in silences:
        if silence.state(now) is SilenceState.ACTIVE and all_match(silence.matchers, labels):
            return silence
    return None


def format_time(ns: int) -> str:
    """RFC 3339 in UTC, to the nanosecond, without trailing zeros."""
    seconds, rest = divmod(ns, 10**9)
    text = (_EPOCH + datetime.timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%S")
    return f"{text}.{rest:09d}".rstrip("0").rstrip(".") + "Z"


def parse_time(text: str) -> int:
    """The reverse of `format_time`; other zones are understood, and a time without one is in UTC. Or `ValueError`."""
    try:
        return parse_instant(text.strip(), datetime.UTC)
    except ValueError:
        raise ValueError(f"must be a time such as 2030-01-31T12:00:00Z, not {text!r}") from None


class SilenceFile:
    """Reads and appends; nothing is ever removed, so that expired silences are history.

    Methods raise `LakeError` where the file can't be read or written, or a line is no silence.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / SILENCES
        self._seen: tuple[int, int, int] | None = None

    def read(self) -> list[Silence]:
        """The last version of each silence, by their starts; none where there is no file."""
        with lake_errors(self.path):
            try:
                data = self.path.read_bytes()
            except FileNotFoundError:
                return []
        found: dict[str, Silence] = {}
        for number, line in enumerate(data.split(b"\n")[:-1], 1):  # a line without an end was cut off by a kill
            try:
                silence = Silence.from_json(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise LakeError(f"{self.path}:{number}: not a silence: {error!r}") from error
            found[silence.id] = silence
        return sorted(found.values(), key=lambda silence: (silence.starts_ns, silence.id))

    def read_changed(self) -> list[Silence] | None:
        """As `read`, but None while the file is the same as at the last call, whether that was an error or not."""
        seen = file_version(self.path) or (0, 0, 0)
        if seen == self._seen:
            return None
        self._seen = seen
        return self.read()

    def add(
        self, matchers: tuple[Matcher, ...], *, start: int, end: int, created_by: str, comment: str, now: int
    ) -> Silence:
        """Write a new silence, with the person who creates it and the reason.

        Raises:
            PipelineError: it would end before it begins or now, or silence every alert, or says not who or why.
        """
        if all(matcher.matches({}) for matcher in matchers):
            raise PipelineError('a silence needs a matcher that not every alert fulfils, such as agent="..."')
        if end <= max(start, now):
            raise PipelineError(f"the silence would end at {format_time(end)}, before it begins or in the past")
        for text, name in ((created_by, "who creates it"), (comment, "a comment")):
            if not text.strip():
                raise PipelineError(f"a silence needs {name}")
        silence = Silence(
            id=str(uuid.uuid4()), matchers=matchers, starts_ns=start, ends_ns=end, created_by=created_by,
            comment=comment, updated_ns=now,
        )  # fmt: skip
        self._append(silence)
        return silence

    def expire(self, id: str, now: int) -> Silence:
        """End a silence now, by its id or an unambiguous beginning of it.

        Raises:
            PipelineError: there is no such silence, there are several, or it has ended.
        """
        found = [silence for silence in self.read() if silence.id.startswith(id)] if id else []
        found = [silence for silence in found if silence.id == id] or found
        if len(found) != 1:
            raise PipelineError(f"{id}: {'several silences begin with this' if found else 'no such silence'}")
        if found[0].state(now) is SilenceState.EXPIRED:
            raise PipelineError(f"{found[0].id}: ended already at {format_time(found[0].ends_ns)}")
        expired = found[0].expire(now)
        self._append(expired)
        return expired

    def _append(self, silence: Silence) -> None:
        line = json.dumps(silence.to_json(), ensure_ascii=False).encode() + b"\n"
        with lake_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a+b") as file:
                fcntl.flock(file, fcntl.LOCK_EX)
                file.seek(0)
                data = file.read()
                if data and not data.endswith(b"\n"):
                    file.truncate(data.rfind(b"\n") + 1)
                file.write(line)
                file.flush()
                os.fsync(file.fileno())
