"""What a caller may read, as rules say it: agents, classes, objects, events and references."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from qmf.acl.rules import Lookup
from qmf.acl.ruleset import RuleSet
from qmf.protocol import ObjectId
from qmf.schema import ClassKey

#: Properties of lookups about reading, besides the name.
_PROPERTIES = ("schemapackage", "schemaclass", "agent")
#: Classes of agents whose decisions are remembered.
_MAX_KEPT = 100_000

_BOTH = frozenset({True, False})
_YES = frozenset({True})


@attrs.frozen(eq=False)
class ReadRights:
    """What a user may read.

    Attributes:
        rules: that decide.
        user: with realm.
        groups: that an identity provider names.
    """

    rules: RuleSet
    user: str
    groups: frozenset[str] = frozenset()
    everything: bool = attrs.field(init=False)
    """No object, event or agent is withheld."""
    by_agent: bool = attrs.field(init=False)
    """It depends on the agent what may be read of a class."""
    _classes: dict[tuple[str, str, str | None], frozenset[bool]] = attrs.field(init=False, repr=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        anything = self.rules.possible(Lookup(self.user, *_QUERY, properties=None, groups=self.groups), _ANY)
        object.__setattr__(self, "everything", anything == _YES)
        own = self.rules.rules_for(self._lookup("", {}))
        object.__setattr__(self, "by_agent", any("agent" in rule.properties for rule in own))

    def sees_class(self, key: ClassKey, agent: str | None = None) -> bool:
        """Whether some objects of a class, or the events of a class, may be read.

        Args:
            agent: of the objects; None for any.
        """
        return True in self._of_class(key.package, key.name, agent)

    def sees_agent(self, agent: str, classes: Iterable[ClassKey]) -> bool:
        """Whether something of an agent, which has some classes, may be read."""
        return any(self.sees_class(key, agent) for key in classes)

    def sees_object(self, key: ClassKey | None, object_id: ObjectId, agent: str) -> bool:
        """Whether an object may be read; `key`: its class, or None if it has none."""
        package, name = ("", "") if key is None else (key.package, key.name)
        whole = self._of_class(package, name, agent)
        if whole != _BOTH:
            return True in whole
        return self._allows(local_name(key, object_id.object_name), _properties(package, name, agent))

    def sees_reference(self, target: ObjectId, agent: str) -> bool:
        """Whether an object may be read of which only the id is known.

        Args:
            agent: of the object that has the reference.
        """
        package, name, _ = _parts(target.object_name)
        key = ClassKey(package, name) if name else None
        return self.sees_object(key, target, target.agent_name or agent)

    def sees_event(
        self, package: str, name: str, agent: str, object_id: ObjectId | None, texts: Iterable[object]
    ) -> bool:
        """Whether an event may be read: its class, the object that it is about, and every object that it names.

        Args:
            package, name: its class; empty if it has none.
            agent: that raised it.
            object_id: that it is about, or None.
        """
        if not self._allows("", _properties(package, name, agent)):
            return False
        if object_id is not None and not self.sees_reference(object_id, agent):
            return False
        return not any(self._is_withheld(text) for value in texts for text in _names(value))

    def _is_withheld(self, text: str) -> bool:
        """A rule denies to read objects of this name, of whatever class."""
        lookup = self._lookup(text, {})
        return any(
            not rule.outcome.allows and "name" in rule.properties and rule.mismatch(lookup, but=_PROPERTIES) is None
            for rule in self.rules.rules_for(lookup)
        )

    def _of_class(self, package: str, name: str, agent: str | None) -> frozenset[bool]:
        key = package, name, agent if self.by_agent else None
        found = self._classes.get(key)
        if found is None:
            if len(self._classes) >= _MAX_KEPT:
                self._classes.clear()
            unknown = ("name", "agent") if agent is None else ("name",)
            found = self.rules.possible(self._lookup("", _properties(package, name, agent or "")), unknown)
            self._classes[key] = found
        return found

    def _allows(self, name: str, properties: dict[str, str]) -> bool:
        return self.rules.decide(self._lookup(name, properties)).allows

    def _lookup(self, name: str, properties: dict[str, str]) -> Lookup:
        return Lookup(self.user, *_QUERY, name, properties, groups=self.groups)


_QUERY = ("access", "query")
_ANY = ("name", *_PROPERTIES)


def local_name(key: ClassKey | None, object_name: str) -> str:
    """The name of an object as rules have it: without package and class, with which most names begin."""
    package, name, rest = _parts(object_name)
    if key is None:
        return rest if name else object_name
    return rest if (package, name.lower()) == (key.package, key.name.lower()) else object_name


def _parts(object_name: str) -> tuple[str, str, str]:
    """Package, class and the rest of an object's name; the first two are empty where it has another form."""
    parts = object_name.split(":", 2)
    return (parts[0], parts[1], parts[2]) if len(parts) == 3 else ("", "", object_name)


def _properties(package: str, name: str, agent: str) -> dict[str, str]:
    found = {"agent": agent}
    return {**found, "schemapackage": package, "schemaclass": name} if name else found


def _names(value: object) -> list[str]:
    """The texts in an argument of an event, by which objects may be named."""
    if isinstance(value, ObjectId):
        return [_parts(value.object_name)[2]]
    if isinstance(value, str):
        return [value, _parts(value)[2]]
    if isinstance(value, dict):
        return [text for item in value.values() for text in _names(item)]
    if isinstance(value, (list, tuple)):
        return [text for item in value for text in _names(item)]
    return []
