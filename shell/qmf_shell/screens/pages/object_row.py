"""A row that shows an object, and what it was before: so rates and changes are computed only for what is shown."""

from __future__ import annotations

import attrs

from qmf.views.fields import ObjectField
from qmf.views.objects import ObjectView
from qmf.views.rates import growth_rate
from qmf.views.units import is_number
from qmf_shell.screens.rows import Row

#: An object that did not change for so many seconds did not grow during them: what follows belongs to fewer seconds.
LONGEST_STEP = 12.0
#: Objects that are listed are followed from then on: what comes within so many seconds is the same reading once more.
SAME_READING = 1.0
#: A rate is shown until the object has not changed for so many of its last steps.
HELD = 2.0


@attrs.define(eq=False, kw_only=True)
class ObjectRow(Row):
    """A row that shows an object.

    Attributes:
        item: the object as it is now.
        before: as it was before its last change; None before the first.
        at: when it came, in seconds of a monotonic clock.
        step: seconds between `before` and now, as far as they count for rates.
        update: number of the update in which it changed last.
        followed: it was received once more since it was listed.
    """

    item: ObjectView
    before: ObjectView | None = None
    at: float = 0.0
    step: float = 0.0
    update: int = 0
    followed: bool = False

    def change(self, record: ObjectView, at: float, update: int, *, asked: bool = False) -> None:
        """The object was received.

        Args:
            record: as it is now.
            asked: it is the answer to a question at `at`, as all before were; else its values have changed.
        """
        seconds = 0.0 if asked else (record.updated - self.item.updated) / 1e9
        seconds = seconds if seconds > 0 else max(at - self.at, 0.0)
        followed, self.followed = self.followed, True
        if not followed and not asked and seconds < SAME_READING:
            # Growth within so short a time says nothing: most counters would seem to stand still.
            self.item, self.at = record, at
            return
        self.step = seconds if asked else min(seconds, LONGEST_STEP)
        self.before, self.item, self.at, self.update = self.item, record, at, update

    def rate(self, field: ObjectField, now: float) -> float | None:
        """The growth of a counter per second; None before it is known; `now`: seconds of the clock of `at`."""
        value = self.item.values.get(field.name)
        if not is_number(value) or self.mark.gone:
            return None
        if self.before is None:
            return 0.0 if now - self.at > LONGEST_STEP else None
        if now - self.at > max(self.step, 1.0) * HELD:
            return 0.0
        last = self.before.values.get(field.name)
        if not is_number(last) or self.step <= 0:
            return None
        restarted = self.before.identity.key.agent_epoch != self.item.identity.key.agent_epoch
        return growth_rate(field.type, last, value, self.step, restarted=restarted)
