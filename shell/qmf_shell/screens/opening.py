"""How pages open each other: class -> objects -> object -> its references and events, and back."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import attrs

from qmf.schema import ClassKey, ClassSchema
from qmf.views.objects import ObjectIdentity, ObjectKey, ObjectView
from qmf_shell.objects.columns import column_names
from qmf_shell.objects.heartbeat_states import HeartbeatState
from qmf_shell.objects.selecting import compile_selection
from qmf_shell.parsing.selection import ParsedSelection
from qmf_shell.screens.pages.classes import ClassesPage
from qmf_shell.screens.pages.events import EventsPage, EventTest, event_test
from qmf_shell.screens.pages.heartbeats import AgentBeatsPage, HeartbeatsPage
from qmf_shell.screens.pages.objects import ObjectsPage, ObjectsSpec
from qmf_shell.screens.pages.references import ReferencesPage
from qmf_shell.screens.pages.values import ValuesPage
from qmf_shell.screens.state import Page
from qmf_shell.session.backend import ClassName
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_names

#: Events and heartbeats are taken from what the session has received: asking often costs nothing.
_OFTEN = 0.5


@attrs.frozen
class PageFactory:
    """Makes pages.

    Attributes:
        context: the session.
        interval: seconds between updates.
        all_integers: every integer is a counter.
    """

    context: Context
    interval: float
    all_integers: bool = False

    def classes(self, only: Sequence[ClassName] = ()) -> Page:
        """The classes of objects; `only`: these."""
        return ClassesPage(self.context, self.interval, self.whole_class, only)

    def whole_class(self, keys: Sequence[ClassKey]) -> Page:
        """All objects of the versions of a class."""
        return self.objects(ObjectsSpec(name=class_names(keys)[0], keys=keys, all_integers=self.all_integers))

    def spec_of(self, keys: Sequence[ClassKey], selection: ParsedSelection) -> ObjectsSpec:
        """The objects of the versions of a class that a selection without ids means.

        Raises:
            QmfError: a name or value in the selection is wrong.
        """
        compiled = compile_selection(self.context, keys, selection)
        return ObjectsSpec(
            name=class_names(keys)[0],
            keys=keys,
            predicate=compiled.filter.predicate,
            test=compiled.filter.test,
            columns=column_names(selection),
            more=not selection.columns,
            sort_keys=compiled.sort_keys,
            all_integers=self.all_integers,
            limit=selection.limit,
        )

    def objects(self, spec: ObjectsSpec) -> ObjectsPage:
        """The objects of a class."""
        return ObjectsPage(self.context, spec, self.interval, self.object)

    def object(self, record: ObjectView) -> Page:
        """One object: its values, references and events."""
        return self.values([record])

    def values(self, records: Sequence[ObjectView]) -> Page:
        """All values of some objects; of a single one its references and events as well, as tabs."""
        page = self.only_values(records)
        identities = [item.identity for item in records]
        tabs: list[tuple[str, Page]] = [("values", page)]
        if len(records) == 1:
            tabs.append(("references", ReferencesPage(self.context, identities[0], self.interval, self.object)))
        tabs.append(("events", self.events(event_test(records), title=page.title)))
        for _, item in tabs:
            item.tabs = tabs
        return page

    def only_values(self, records: Sequence[ObjectView]) -> ValuesPage:
        """All values of some objects, without tabs."""
        return ValuesPage(self.context, records, self.interval, self.reference, all_integers=self.all_integers)

    def reference(self, key: ObjectKey) -> Page:
        """The object that a reference names; what it is becomes known when it is loaded."""
        number = self.context.ids.number(key)
        entry = None if number is None else self.context.ids.entry(number)
        identity = _identity(key) if entry is None else entry.identity
        class_key = identity.class_key
        schema = ClassSchema(package=class_key.package, name=class_key.name, hash=class_key.hash or UUID(int=0))
        return self.values([ObjectView(identity, schema, {})])

    def events(self, passes: EventTest, *, title: str = "events") -> Page:
        """Events as they come."""
        return EventsPage(self.context, passes, min(self.interval, _OFTEN), self.reference, title=title)

    def heartbeats(self, wanted: str) -> Page:
        """The agents with their heartbeats."""

        def agent(state: HeartbeatState) -> Page:
            return AgentBeatsPage(self.context, state.agent, state.broker, min(self.interval, _OFTEN))

        return HeartbeatsPage(self.context, wanted, min(self.interval, 1.0), agent)


def _identity(key: ObjectKey) -> ObjectIdentity:
    """What the name of an object says about it: most agents name objects ``package:class:index``."""
    package, _, rest = key.object_name.partition(":")
    name, colon, index = rest.partition(":")
    if not colon:
        return ObjectIdentity(key, ClassKey("", "object"), key.object_name)
    return ObjectIdentity(key, ClassKey(package, name), index)
