"""What mutes an alert at one time: a silence, or an alert that inhibits it. Pure."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf.pipeline.notifying.active_alert import ActiveAlert
from qmf.pipeline.notifying.inhibition import Inhibitor
from qmf.pipeline.notifying.silences import Silence, find_silence


@attrs.frozen
class Mute:
    """Why an alert is not notified.

    Attributes:
        silence: the silence that matches it, or None.
        inhibited_by: the alert that inhibits it, or None.
    """

    silence: Silence | None = None
    inhibited_by: ActiveAlert | None = None

    def __bool__(self) -> bool:
        """True where it is muted."""
        return self.silence is not None or self.inhibited_by is not None


class Muting:
    """Answers for the alerts and silences of one time."""

    def __init__(self, inhibitor: Inhibitor, silences: Sequence[Silence], now: int) -> None:
        self._inhibitor = inhibitor
        self._silences = silences
        self._now = now
        self._known: dict[str, Mute] = {}

    def of(self, alert: ActiveAlert) -> Mute:
        """What mutes an alert."""
        found = self._known.get(alert.id)
        if found is None:
            silence = find_silence(self._silences, alert.labels, self._now)
            found = self._known[alert.id] = Mute(silence, self._inhibitor.source_of(alert))
        return found
