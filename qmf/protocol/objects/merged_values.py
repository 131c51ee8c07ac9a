"""An update over what was known of an object before, without unpacking either (QMF2.md 4.7).

Agents send the properties, or the statistics, or both; objects are looked at far less often than they are updated. So
values as received stay bytes, and a value is looked for in the newest update that has it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from qmf.protocol.objects.lazy_values import LazyValues

Values = Mapping[str, object]


class MergedValues(Mapping[str, object]):
    """Two sets of values, the newer over the older. Read-only.

    Attributes:
        newer, older: the values.
        hidden: names whose older value doesn't count any more.
    """

    __slots__ = ("hidden", "newer", "older")

    def __init__(self, newer: LazyValues, older: Values, hidden: frozenset[str]) -> None:
        self.newer = newer
        self.older = older
        self.hidden = hidden

    def __getitem__(self, name: str) -> object:
        if name in self.newer:
            return self.newer[name]
        if name in self.hidden:
            raise KeyError(name)
        return self.older[name]

    def __contains__(self, name: object) -> bool:
        return name in self.newer or (name in self.older and name not in self.hidden)

    def __iter__(self) -> Iterator[str]:
        return iter(self.unpack())

    def __len__(self) -> int:
        return len(self.unpack())

    def __repr__(self) -> str:
        return repr(self.unpack())

    def unpack(self) -> dict[str, object]:
        """All of them, as a dictionary of its own."""
        kept = as_dict(self.older)
        for name in self.hidden:
            kept.pop(name, None)
        kept.update(self.newer.unpack())
        return kept


def as_dict(values: Values) -> dict[str, object]:
    """Values of whatever kind as a dictionary of its own; in one step where they are lazy."""
    return values.unpack() if isinstance(values, LazyValues | MergedValues) else dict(values)


def detached_values(values: Values) -> Values:
    """The same values without the rest of the message that they came in; values that do not refer to it as they are."""
    return values.detach() if isinstance(values, LazyValues) else values


def shared_names(values: Values) -> tuple[str, ...] | None:
    """The names of lazy values, in order: mostly one tuple for all that look alike. None for other values."""
    return values.names if isinstance(values, LazyValues) else None


def merge_values(older: Values, newer: Values, unset: Collection[str]) -> Values:
    """Lay an update over older values.

    Args:
        older: what was known.
        newer: the update.
        unset: names whose older value doesn't count any more, as the update has none.
    """
    hidden = frozenset(name for name in unset if name in older)
    if not isinstance(newer, LazyValues):
        kept = as_dict(older)
        for name in hidden:
            kept.pop(name, None)
        kept.update(newer)
        return kept
    newer = newer.detach()
    if isinstance(older, MergedValues):
        # Two sets are enough: an update hides the last one of its group.
        if _covers(newer, older.newer):
            hidden |= older.hidden
            older = older.older
        else:
            older = as_dict(older)
    if isinstance(older, LazyValues):
        if _covers(newer, older):
            return newer
        older = older.detach()
    return MergedValues(newer, older, hidden)


def _covers(newer: LazyValues, older: LazyValues) -> bool:
    """True when an update has every value that an older one has."""
    names, before = newer.names, older.names
    return names is before or (len(names) >= len(before) and set(names).issuperset(before))


def compare_bytes(before: Values, after: Values) -> tuple[bool, Values] | None:
    """Compare two states of an object as far as their bytes and names allow it.

    Returns:
        whether they are equal, and the values in which alone they may differ; None where values have to be unpacked.
    """
    if isinstance(after, MergedValues) and not after.hidden:
        if after.older is before:
            return None  # the first update of a group: the same values may have been known
        if not isinstance(before, MergedValues) or before.hidden or after.older is not before.older:
            return None
        before, after = before.newer, after.newer
    if not isinstance(before, LazyValues) or not isinstance(after, LazyValues) or before.layout is not after.layout:
        return None
    if before.raw() == after.raw():
        return True, after
    return (False, after) if before.names == after.names else None
