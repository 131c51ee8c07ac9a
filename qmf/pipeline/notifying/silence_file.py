"""The file of silences: JSON lines, each a version of a silence. Written by commands, read by a running job."""

from __future__ import annotations

import fcntl
import json
import os
import uuid
from pathlib import Path

from qmf._text_files import file_version
from qmf.pipeline.errors import LakeError, PipelineError, lake_errors
from qmf.pipeline.notifying.matchers import Matcher
from qmf.pipeline.notifying.silences import Silence, SilenceState, format_time

#: Its name in the folder of the notifications' state.
SILENCES = "silences.jsonl"


class SilenceFile:
    """Reads and appends; nothing is ever removed, so that expired silences are history."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / SILENCES
        self._seen: tuple[int, int, int] | None = None

    def read(self) -> list[Silence]:
        """The last version of each silence, by their starts; none where there is no file.

        Raises:
            LakeError: the file can't be read, or a line is no silence.
        """
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
        """As `read`, but None while the file is the same as at the last call.

        Raises:
            LakeError: as of `read`; not again before the file changes.
        """
        seen = file_version(self.path) or (0, 0, 0)
        if seen == self._seen:
            return None
        self._seen = seen
        return self.read()

    def add(
        self, matchers: tuple[Matcher, ...], *, start: int, end: int, created_by: str, comment: str, now: int
    ) -> Silence:
        """Write a new silence.

        Args:
            matchers: at least one that doesn't match the empty text, so that a slip silences not everything.
            start, end: ns since 1970.
            created_by: person.
            comment: reason.
            now: ns since 1970.

        Raises:
            PipelineError: it would end before it begins or now, or silence every alert, or says not who or why.
            LakeError: the file can't be written.
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
        """End a silence now.

        Args:
            id: of the silence, or an unambiguous beginning of it.
            now: ns since 1970.

        Raises:
            PipelineError: there is no such silence, there are several, or it has ended.
            LakeError: the file failed.
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
