"""The tables of a lake at a moment, for streams: up to where they can be read, and until when they are complete."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import attrs

from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.recorders import find_settled
from qmf.pipeline.lake.waiting import waiting_since


@attrs.frozen
class LakeVersions:
    """Tables at a moment at which no batch of a recorder was in some of them only.

    Attributes:
        versions: numbers of the last commits, by path of the table.
        waiting: the arrival of the first row that recorders held back, in ns, of tables of which they did.
    """

    versions: Mapping[str, int]
    waiting: Mapping[str, int] = attrs.field(factory=dict)

    def complete_until(self, paths: Iterable[str]) -> int | None:
        """The arrival until which some tables are complete, in ns; None where nothing of them waits."""
        return min((self.waiting[path] for path in paths if path in self.waiting), default=None)


def find_versions(lake: DeltaLake, find: Callable[[], Mapping[str, int]], now_ns: Callable[[], int]) -> LakeVersions:
    """The versions that a function finds, at such a moment.

    Args:
        lake: with the tables.
        find: looks for the versions; it may be called again.
        now_ns: ns since 1970.

    Raises:
        LakeError: the file system failed.
    """
    before = waiting_since(lake, now_ns())
    versions = find_settled(lake, find)
    after = waiting_since(lake, now_ns())
    # What was held back before was so when the versions were found, or is in them.
    return LakeVersions(
        versions,
        {path: min(known.get(path, at) for known in (before, after)) for path, at in {**before, **after}.items()},
    )


def all_versions(lake: DeltaLake, now_ns: Callable[[], int]) -> LakeVersions:
    """The versions of all tables of a lake; none where there is no lake yet. Otherwise as `find_versions`."""
    return find_versions(lake, lambda: lake.versions() if lake.exists() else {}, now_ns)
