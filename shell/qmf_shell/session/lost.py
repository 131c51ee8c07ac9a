"""The objects that are lost: their agent is gone, and nobody has reported their end."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterable

import attrs

from qmf.views.objects import ObjectIdentity, ObjectKey
from qmf_shell.session.backend import ClassName
from qmf_shell.session.object_names import class_name


@attrs.frozen
class LostIdentity:
    """An object whose agent is gone.

    Attributes:
        identity: how it was named.
        created: nanoseconds since 1970; 0 if unknown.
        time: when its agent was found to be gone, in nanoseconds since 1970.
        own: it was about what an agent or a console created for itself.
    """

    identity: ObjectIdentity
    created: int
    time: int
    own: bool = False


class LostIdentities:
    """The lost objects of this session. Filled by a callback thread, read by commands."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._lost: dict[ObjectKey, LostIdentity] = {}

    def add(self, found: Iterable[LostIdentity]) -> None:
        """Add objects whose agent is gone now."""
        with self._lock:
            for item in found:
                self._lost.setdefault(item.identity.key, item)

    def agent_found(self, agent: str, broker: str, epoch: int) -> None:
        """An agent is present again: objects that outlive restarts, and those of the same run, are not lost."""
        with self._lock:
            for key in [
                key
                for key in self._lost
                if (key.agent_name, key.broker) == (agent, broker) and key.agent_epoch in (0, epoch)
            ]:
                del self._lost[key]

    def exist(self, keys: Iterable[ObjectKey]) -> None:
        """These objects exist: they are not lost, or not any more."""
        with self._lock:
            if self._lost:
                for key in keys:
                    self._lost.pop(key, None)

    def get(self, key: ObjectKey) -> LostIdentity | None:
        """A lost object, or None."""
        return self._lost.get(key)

    def of(self, names: Collection[ClassName] | None = None, *, everything: bool = True) -> list[LostIdentity]:
        """The lost objects of some classes, or of all; `everything`: with those that tools created for themselves."""
        with self._lock:
            return [
                item
                for item in self._lost.values()
                if (names is None or class_name(item.identity) in names) and (everything or not item.own)
            ]
