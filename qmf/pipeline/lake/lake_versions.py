"""The tables of a lake at a moment, for streams: up to where they can be read, and until when they are complete.

The recorders of a lake that is a folder are seen by the files of their states, see
`qmf.pipeline.record.writer_state`.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import attrs

from qmf.pipeline.errors import lake_errors
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.location import local_path
from qmf.pipeline.lake.waiting import waiting_since

#: Seconds that a reader waits for a recorder to complete a batch, and between two looks.
_WAIT_LIMIT, _POLL_INTERVAL = 2.0, 0.01


def is_recording(lake: DeltaLake) -> bool:
    """True while a recorder on this machine holds its lock on the lake."""
    return any(_is_locked(path) for path in _writer_files(lake, "lock"))


def is_committing(lake: DeltaLake) -> bool:
    """True while a batch of a recorder on this machine may be in some of its tables only."""
    return bool(_writer_files(lake, "*.arrow"))


def batches_of_recorders(lake: DeltaLake) -> frozenset[Path]:
    """The batches that recorders which run have not committed whole now, by their files without the suffix."""
    files = [path for suffix in ("arrow", "waiting") for path in _writer_files(lake, f"*.{suffix}")]
    return frozenset(path.with_suffix("") for path in files if _is_locked(path.with_name("lock")))


def _is_locked(path: Path) -> bool:
    with lake_errors(path):
        try:
            with path.open(encoding="utf-8") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except FileNotFoundError:
            pass
    return False


def _writer_files(lake: DeltaLake, pattern: str) -> list[Path]:
    return list(local_path(lake.url).glob(f"_pending/*/{pattern}")) if lake.is_local else []


@attrs.frozen
class LakeVersions:
    """Last commits of tables, by path, when no batch was in some only, and the first arrivals that wait."""

    versions: Mapping[str, int]
    waiting: Mapping[str, int] = attrs.field(factory=dict)

    def complete_until(self, paths: Iterable[str]) -> int | None:
        """The arrival until which some tables are complete, in ns; None where nothing of them waits."""
        return min((self.waiting[path] for path in paths if path in self.waiting), default=None)


def find_versions(lake: DeltaLake, find: Callable[[], Mapping[str, int]], now_ns: Callable[[], int]) -> LakeVersions:
    """The versions that a function finds, at such a moment; it may be called again."""
    before = waiting_since(lake, now_ns())
    give_up = time.monotonic() + _WAIT_LIMIT
    while True:
        # Later, what is found counts, whatever recorders do.
        is_late = time.monotonic() > give_up
        if is_late or not is_committing(lake):
            versions = find()
            if is_late or not is_committing(lake):
                break
        time.sleep(_POLL_INTERVAL)
    after = waiting_since(lake, now_ns())
    # What was held back before was so when the versions were found, or is in them.
    return LakeVersions(
        versions,
        {path: min(known.get(path, at) for known in (before, after)) for path, at in {**before, **after}.items()},
    )


def all_versions(lake: DeltaLake, now_ns: Callable[[], int]) -> LakeVersions:
    """The versions of all tables of a lake; none where there is no lake yet. Otherwise as `find_versions`."""
    return find_versions(lake, lambda: lake.versions() if lake.exists() else {}, now_ns)
