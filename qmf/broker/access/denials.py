"""The last requests that were denied, so that somebody can be told why."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import attrs

from qmf.acl.rules import Lookup

#: Different requests that are kept.
MAX_KEPT = 200

_Key = tuple[str, str, str, str, tuple[tuple[str, str], ...], frozenset[str]]


@attrs.frozen
class DeniedRequest:
    """A request that was denied.

    Attributes:
        lookup: what was asked for.
        time: of the last time, in nanoseconds since 1970.
        count: how often.
    """

    lookup: Lookup
    time: int
    count: int = 1


class DeniedRequests:
    """The last ones; a request that is repeated is kept once."""

    def __init__(self, clock: Callable[[], int] = time.time_ns) -> None:
        self._clock = clock
        self._requests: dict[_Key, DeniedRequest] = {}

    def add(self, lookup: Lookup) -> None:
        """A request was denied."""
        properties = tuple((lookup.properties or {}).items())
        key = (lookup.user, lookup.action, lookup.object_type, lookup.name, properties, lookup.groups)
        before = self._requests.pop(key, None)
        self._requests[key] = DeniedRequest(lookup, self._clock(), 1 if before is None else before.count + 1)
        if len(self._requests) > MAX_KEPT:
            del self._requests[next(iter(self._requests))]

    def latest(self, user: str | None = None) -> Iterator[DeniedRequest]:
        """From the latest one on; of a user with realm, or of all."""
        return (one for one in reversed(self._requests.values()) if user in (None, one.lookup.user))
