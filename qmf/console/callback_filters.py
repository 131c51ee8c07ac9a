"""Callback filters: what `bindPackage`, `bindClass` and the like select.

Objects and events are selected by binding keys, so that others are not received. Packages, classes and agents become
known in other ways, and are filtered here.
"""

from __future__ import annotations

from qmf.console import aio
from qmf.console.aio import class_keys
from qmf.schema import ClassKey, Kind


class CallbackFilters:
    """What one session selects."""

    def __init__(self, *, objects: bool, events: bool, user_bindings: bool) -> None:
        self.keys: dict[str, None] = {}
        """Binding keys for objects and events, in the order in which they were added."""
        self._classes: set[tuple[str, str | None]] = set()
        self._events: set[tuple[str, str | None]] = set()
        self._agents: set[tuple[str | None, str | None, str | None]] = set()
        if not user_bindings:
            self.add_keys([*(class_keys("data", None, None) * objects), *(class_keys("event", None, None) * events)])

    def add_keys(self, keys: list[str]) -> list[str]:
        """Add binding keys; returns those that are new."""
        added = [key for key in keys if key not in self.keys]
        self.keys.update(dict.fromkeys(added))
        return added

    def remove_keys(self, keys: list[str]) -> bool:
        """Remove binding keys; returns whether there was one of them."""
        removed = [key for key in keys if key in self.keys]
        for key in removed:
            del self.keys[key]
        return bool(removed)

    def add_class(self, package: str, name: str | None) -> list[str]:
        """Select objects; returns the binding keys that are new."""
        self._classes.add((package, name))
        return self.add_keys(class_keys("data", package, name))

    def add_event(self, package: str, name: str | None) -> list[str]:
        """Select events; returns the binding keys that are new."""
        self._events.add((package, name))
        return self.add_keys(class_keys("event", package, name))

    def note_event(self, package: str, name: str | None) -> None:
        """Select the classes of events without binding anything."""
        self._events.add((package, name))

    def add_agent(self, vendor: str | None, product: str | None, instance: str | None) -> None:
        """Select agents; None matches all."""
        if vendor or product or instance:
            self._agents.add((vendor, product, instance))

    def wants_package(self, package: str) -> bool:
        """Whether `newPackage` is called for it."""
        chosen = self._classes | self._events
        return not chosen or any(package == item[0] for item in chosen)

    def wants_class(self, key: ClassKey) -> bool:
        """Whether `newClass` is called for it."""
        if not self._classes and not self._events:
            return True
        chosen = self._events if key.kind is Kind.EVENT else self._classes
        return (key.package, None) in chosen or (key.package, key.name) in chosen

    def wants_agent(self, agent: aio.Agent) -> bool:
        """Whether callbacks are made for it; always for the connected broker's agent."""
        if not self._agents or agent.is_broker:
            return True
        parts = (agent.vendor, agent.product, agent.instance)
        return any(
            all(want in (None, have) for want, have in zip(wanted, parts, strict=True)) for wanted in self._agents
        )
