"""The alerts of a job as a command shows them: active ones, and what mutes them now."""

from __future__ import annotations

import json
from collections.abc import Set
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.correlate.alert_table import alerts
from qmf.pipeline.correlate.alerts import Alert, AlertRow, in_order
from qmf.pipeline.correlate.stream_state import stream_file
from qmf.pipeline.errors import LakeError
from qmf.pipeline.notifying.matchers import Matcher, all_match
from qmf.pipeline.notifying.muting import Inhibitor, InhibitRule, Mute, Muting
from qmf.pipeline.notifying.notification import webhook_alert
from qmf.pipeline.notifying.silences import SilenceFile
from qmf.pipeline.notifying.state import (
    ENDED_TEXT,
    INHIBIT_TEXT,
    PENDING_TEXT,
    IntegrationCounts,
    NotificationState,
    SentState,
    read_ended,
    read_state,
)

#: The folder of the notifications' state, in the folder of the tables of alerts.
NOTIFY_FOLDER = "_notify"

_COLUMNS = [field.name for field in attrs.fields(AlertRow)]


@attrs.frozen(kw_only=True)
class ShownAlert:
    """An active alert, what mutes it, and the integrations that were told of it, or were to be told and weren't yet."""

    alert: Alert
    mute: Mute
    told: tuple[str, ...] = ()
    owed: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """``pending``, ``firing``, ``silenced``, ``inhibited``, or ``resolved`` while somebody must be told of it."""
        if not self.alert.is_firing:
            return self.alert.state.value
        return "silenced" if self.mute.silence else "inhibited" if self.mute.inhibited_by else "firing"

    def to_json(self) -> dict[str, Any]:
        """Like an alert of Alertmanager's API."""
        silence, source = self.mute.silence, self.mute.inhibited_by
        return {
            **webhook_alert(self.alert),
            "status": {
                "state": self.state,
                "silencedBy": [silence.id] if silence else [],
                "inhibitedBy": [source.fingerprint] if source else [],
            },
            "told": list(self.told),
            "owed": list(self.owed),
        }


@attrs.frozen
class NotificationOverview:
    """What a job knows: alerts by their start, and counts of notifications, by integration."""

    alerts: tuple[ShownAlert, ...]
    counts: dict[str, IntegrationCounts]


def read_overview(folder: Path, matchers: tuple[Matcher, ...], now: int) -> NotificationOverview:
    """The state of a job that runs or has ended: the alerts that match, and what mutes them now; or `LakeError`."""
    state, texts = read_state(folder, INHIBIT_TEXT, PENDING_TEXT, ENDED_TEXT)
    rules = [InhibitRule.from_json(item) for item in json.loads(texts[INHIBIT_TEXT] or "[]")]
    pending = [Alert(**item) for item in json.loads(texts[PENDING_TEXT] or "[]")]
    ended = [(alert, now - at) for alert, at in read_ended(texts[ENDED_TEXT])]
    muting = Muting(Inhibitor(rules, state.alerts.values(), ended), SilenceFile(folder).read(), now)
    shown = [
        ShownAlert(
            alert=alert,
            mute=muting.of(alert),
            told=_integrations(state, alert, {SentState.FIRING}),
            owed=_integrations(state, alert, {SentState.OWED, SentState.SENT}),
        )
        for alert in sorted((*state.alerts.values(), *pending), key=lambda alert: (alert.starts_ns, alert.id))
        if all_match(matchers, alert.labels)
    ]
    return NotificationOverview(tuple(shown), dict(state.counts))


def read_table_overview(out: Path, matchers: tuple[Matcher, ...]) -> NotificationOverview:
    """The open alerts of a job without notifications: those in its table, of the stream, or else of the batch."""
    table = next((rows for by in ("stream", "batch") if (rows := alerts(str(out), by=by)) is not None), None)
    if table is None and not stream_file(out).exists():
        raise LakeError(f"{out}: no table of alerts; qmf-pipeline correlate makes it")
    rows = [] if table is None else table.select(_COLUMNS).to_pylist()
    last = {row.alert_id: row for row in in_order(AlertRow(**row) for row in rows)}
    found = [row.alert() for row in last.values() if not row.cleared]
    return NotificationOverview(
        tuple(
            ShownAlert(alert=alert, mute=Mute())
            for alert in sorted(found, key=lambda alert: (alert.starts_ns, alert.id))
            if all_match(matchers, alert.labels)
        ),
        {},
    )


def _integrations(state: NotificationState, alert: Alert, told: Set[SentState]) -> tuple[str, ...]:
    return tuple(sorted(key for key, value in state.told.get(alert.id, {}).items() if value in told))
