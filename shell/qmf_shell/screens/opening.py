"""How pages open each other: class -> objects -> object -> its references and events, and back."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf_shell.screens.pages.objects import ObjectsPage, ObjectsSpec
from qmf_shell.screens.pages.values import ValuesPage
from qmf_shell.screens.state import Page
from qmf_shell.session.backend import ObjectKey, ObjectRecord
from qmf_shell.session.context import Context


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

    def objects(self, spec: ObjectsSpec) -> Page:
        """The objects of a class."""
        return ObjectsPage(self.context, spec, self.interval, self.object)

    def object(self, record: ObjectRecord) -> Page:
        """One object: its values, references and events."""
        return self.values([record])

    def values(self, records: Sequence[ObjectRecord]) -> Page:
        """All values of some objects."""
        return ValuesPage(self.context, records, self.interval, self.reference, all_integers=self.all_integers)

    def reference(self, key: ObjectKey) -> Page | None:
        """The object that a reference names; None if it is not known."""
        del key
        return None
