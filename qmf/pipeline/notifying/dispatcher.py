"""Decides what is notified when: groups, waiting times, repetition, inhibition, silences, retries. Pure.

Time is an argument. The caller feeds changes of alerts (`update`), sends what `due` returns, and reports what came of
it (`finish`). A notification is made from what is true when it is sent: while a receiver cannot be reached, what it
must be told stays a mark in the state instead of a message in a queue, so that nothing is lost and memory is bounded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set

import attrs

from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.notifying.config import SECOND, Integration, NotifyConfig, Route
from qmf.pipeline.notifying.matchers import all_match
from qmf.pipeline.notifying.muting import Inhibitor, Muting
from qmf.pipeline.notifying.notification import AlertNotification, NotificationOutcome
from qmf.pipeline.notifying.silences import Silence
from qmf.pipeline.notifying.state import IntegrationCounts, NotificationState, SentState

#: ns to the second attempt after a failure; doubled with each further one, up to the maximum.
FIRST_RETRY, LAST_RETRY = SECOND, 300 * SECOND

#: ns between looks at a group whose `group_interval` is shorter, where nothing changes.
MIN_INTERVAL = 5 * SECOND

#: ns; later than everything.
NEVER = 1 << 62

#: Notifications of one integration that are under way at most.
MAX_UNDER_WAY = 50


@attrs.define
class Group:
    """Alerts that are notified together."""

    route: Route  #: and `key`, `labels`: of the group
    key: str
    labels: Mapping[str, str]
    alerts: set[str] = attrs.field(factory=set)  #: ids
    seen: set[str] = attrs.field(factory=set)  #: ids of alerts that it was looked at with
    flush_at: int = NEVER  #: when it is looked at next
    flushed: bool = False
    waiting: set[str] = attrs.field(factory=set)  #: integrations that have something to be told
    refused: dict[str, int] = attrs.field(factory=dict)  #: when integrations that refused are tried again
    resend: dict[str, int] = attrs.field(factory=dict)  #: when integrations are sent what they would forget

    def has_work(self, now: int) -> bool:
        """True if somebody may have to be told something now."""
        return self.flush_at <= now or bool(self.waiting) or any(at <= now for at in self.resend.values())

    def flush(self, now: int) -> None:
        """The group is looked at."""
        self.flushed = True
        self.seen = set(self.alerts)
        self.flush_at = now + max(self.route.group_interval, MIN_INTERVAL)

    def add(self, alert: Alert, now: int) -> None:
        """Take an alert, or its change."""
        self.alerts.add(alert.id)
        if not self.flushed:
            self.flush_at = max(now, min(self.flush_at, alert.starts_ns + self.route.group_wait))
        elif not self.route.group_interval:
            self.flush_at = now

    def was_missed(self, alert: Alert) -> bool:
        """True for an alert that lasted long enough to be notified, but was found after its end."""
        return (
            alert.ends_ns is not None
            and alert.id not in self.seen
            and alert.ends_ns - alert.starts_ns >= self.route.group_wait
        )


@attrs.define
class _Line:
    """An integration at work: groups whose notifications are under way, and when it is tried again after a failure."""

    under_way: set[str] = attrs.field(factory=set)
    failures: int = 0
    retry_at: int = 0

    def is_open(self, now: int) -> bool:
        """True if another notification may be sent. After a failure, one at a time is an attempt."""
        return now >= self.retry_at and len(self.under_way) < (1 if self.failures else MAX_UNDER_WAY)


class Dispatcher:
    """Takes changes of alerts, and says what is to be sent. Not for several threads at once."""

    def __init__(
        self,
        config: NotifyConfig,
        state: NotificationState,
        now: int,
        *,
        max_age: int = NEVER,
        ended: Iterable[tuple[Alert, int]] = (),
    ) -> None:
        """Continue from a state, which all methods change and the caller stores; times are ns.

        Alerts that started longer than `max_age` ago wait for `release`, and are dropped if they ended before that;
        `ended` are those of the dispatcher whose state this is.
        """
        self._state = state
        self._max_age = max_age
        self._silences: tuple[Silence, ...] = ()
        self._lines: dict[str, _Line] = {}
        self._ended = {alert.id: (alert, at) for alert, at in ended}
        self.reconfigure(config, now)

    @property
    def ended(self) -> list[tuple[Alert, int]]:
        """The alerts that fired until a short time ago, and may still inhibit others; and when they ended."""
        return list(self._ended.values())

    # -- what the caller feeds

    def reconfigure(self, config: NotifyConfig, now: int, *, replaced: Set[str] = frozenset()) -> None:
        """Go on with other routes, receivers and inhibition rules.

        What is under way to integrations in `replaced`, which are others now, ends without `finish`.
        """
        self._receivers, self._inhibit = config.receivers, config.inhibit or ()
        integrations = set(config.integrations)
        self._lines = {key: self._lines.get(key, _Line()) for key in integrations - replaced}
        self._lines |= {key: _Line() for key in integrations & replaced}
        self._root = config.route
        self._groups: dict[str, Group] = {}
        self._groups_of: dict[str, tuple[Group, ...]] = {}
        state = self._state
        state.keep_integrations(integrations)
        last = state.last_sent()
        for alert in list(state.alerts.values()):
            self._place(alert, now)
        for group in list(self._groups.values()):
            if group.key in last:  # it was notified before the restart
                group.flushed = True
                group.flush_at = max(group.flush_at, last[group.key] + group.route.group_interval)
        for key in last:
            if self._groups.get(key) is None:
                state.forget_group(key)
        for alert in list(state.alerts.values()):
            self._drop_if_done(alert)

    def set_silences(self, silences: Sequence[Silence]) -> None:
        """Use other silences from now on."""
        self._silences = tuple(silences)

    def update(self, alerts: Iterable[Alert], now: int) -> None:
        """Take changes of alerts, in order: each replaces what was known of the same id."""
        for alert in alerts:
            if self._is_wanted(alert, now):
                known = self._state.alerts.get(alert.id)
                was_firing = known is not None and known.is_firing
                may_inhibit = any(all_match(rule.source, alert.labels) for rule in self._inhibit)
                if alert.ends_ns is not None and was_firing and may_inhibit:
                    self._ended[alert.id] = alert, now
                self._state.alerts.put(alert.id, alert)
                self._place(alert, now)
                self._drop_if_done(alert)
            else:
                self._forget(alert.id)

    def release(self, now: int) -> None:
        """Notify the alerts of the past that still fire: the job has reached the present."""
        for alert_id in list(self._state.held):
            self._state.held.discard(alert_id)
            self._place(self._state.alerts[alert_id], now)

    def finish(self, notification: AlertNotification, outcome: NotificationOutcome, now: int, error: str = "") -> None:
        """Take what came of a notification."""
        key = notification.integration
        line = self._lines.get(key)
        if line is None:
            return  # the integration was removed meanwhile
        line.under_way.discard(notification.group_key)
        self._count(notification, outcome, now, error)
        group = self._groups.get(notification.group_key)
        if group is not None and outcome is not NotificationOutcome.DELIVERED:
            group.waiting.add(key)
        if outcome is NotificationOutcome.UNREACHABLE:
            line.failures += 1
            line.retry_at = now + min(LAST_RETRY, FIRST_RETRY << min(line.failures - 1, 30))
            return
        line.failures, line.retry_at = 0, 0
        if outcome is NotificationOutcome.REFUSED:
            if group is not None:
                group.refused[key] = now + LAST_RETRY
            return
        for alerts, told in ((notification.firing, SentState.FIRING), (notification.resolved, None)):
            for alert in alerts:
                if alert.id in self._state.alerts:
                    self._state.tell(alert.id, key, told)
        if group is not None:
            self._on_delivered(group, key, now)
        for alert in notification.alerts:
            if (known := self._state.alerts.get(alert.id)) is not None:
                self._drop_if_done(known)

    # -- what the caller sends

    def due(self, now: int) -> list[AlertNotification]:
        """What is to be sent now; each must be followed by `finish`."""
        muting: Muting | None = None
        found: list[AlertNotification] = []
        for group in list(self._groups.values()):
            if not group.has_work(now):
                continue
            muting = muting or self.muting(now)
            flush = group.flush_at <= now
            if flush:
                group.flush(now)
            for integration in self._integrations(group):
                if flush or group.resend.get(integration.key, NEVER) <= now:
                    self._look(group, integration, muting, now)
                if (notification := self._attempt(group, integration, muting, now)) is not None:
                    found.append(notification)
            for alert_id in list(group.alerts):
                if (alert := self._state.alerts.get(alert_id)) is not None:
                    self._drop_if_done(alert)
        return found

    def next_at(self) -> int:
        """When `due` may have something if nothing changes before; `NEVER` if it won't."""
        found = NEVER
        for group in list(self._groups.values()):
            found = min(found, group.flush_at, *group.resend.values())
            for key in group.waiting:
                line = self._lines[key]
                if not line.under_way:
                    found = min(found, max(line.retry_at, group.refused.get(key, 0)))
        return found

    def hurry(self, now: int) -> None:
        """Look at all groups now instead of after their waiting times, because the job ends."""
        for group in list(self._groups.values()):
            group.flush_at = now

    @property
    def is_idle(self) -> bool:
        """True while nothing is under way, and nobody has something to be told that was due."""
        return not any(line.under_way for line in self._lines.values()) and not any(
            group.waiting for group in self._groups.values()
        )

    def muting(self, now: int) -> Muting:
        """What mutes which alerts at a time."""
        longest = max((rule.outlast for rule in self._inhibit), default=0)
        self._ended = {id: (alert, at) for id, (alert, at) in self._ended.items() if now - at < longest}
        ended = [(alert, now - at) for alert, at in self._ended.values()]
        return Muting(Inhibitor(self._inhibit, self._state.alerts.values(), ended), self._silences, now)

    # -- alerts

    def _is_wanted(self, alert: Alert, now: int) -> bool:
        """False for what ended before it fired, or before `max_age`; alerts of the past are held."""
        state = self._state
        known = state.alerts.get(alert.id)
        if alert.ends_ns is not None and (alert.pending or (known is not None and known.pending)):
            return False
        if known is not None and not known.pending and alert.id not in state.held:
            return True
        limit = now - self._max_age
        if alert.is_firing and alert.starts_ns < limit:
            state.held.put(alert.id, True)
            return True
        state.held.discard(alert.id)
        return alert.ends_ns is None or alert.ends_ns >= limit

    def _place(self, alert: Alert, now: int) -> None:
        """Put an alert into its groups."""
        if alert.pending or alert.id in self._state.held:
            return
        for group in self._groups_of_alert(alert):
            group.add(alert, now)
            if group.was_missed(alert):
                for integration in self._integrations(group):
                    self._owe(alert, integration.key)

    def _groups_of_alert(self, alert: Alert) -> tuple[Group, ...]:
        """The groups of an alert, made where they don't exist."""
        if alert.id not in self._groups_of:
            found = []
            for route in self._root.find(alert.labels):
                key = route.group_key(alert.labels)
                if key not in self._groups:
                    self._groups[key] = Group(route, key, route.group_labels(alert.labels))
                found.append(self._groups[key])
            self._groups_of[alert.id] = tuple(found)
        return self._groups_of[alert.id]

    def _drop_if_done(self, alert: Alert) -> None:
        """Forget an alert that has ended and that nobody must be told of."""
        if alert.ends_ns is not None and alert.id not in self._state.told:
            self._forget(alert.id)

    def _forget(self, alert_id: str) -> None:
        self._state.alerts.discard(alert_id)
        self._state.held.discard(alert_id)
        self._state.told.discard(alert_id)
        for group in self._groups_of.pop(alert_id, ()):
            group.alerts.discard(alert_id)
            if not group.alerts and self._groups.pop(group.key, None) is not None:
                self._state.forget_group(group.key)

    # -- integrations

    def _integrations(self, group: Group) -> Sequence[Integration]:
        return self._receivers.get(group.route.receiver, ())

    def _look(self, group: Group, integration: Integration, muting: Muting, now: int) -> None:
        """Find whether an integration must be told something."""
        key = integration.key
        for alert_id in group.alerts:
            alert = self._state.alerts[alert_id]
            told = self._state.sent_state(alert_id, key)
            if alert.is_firing:
                if not muting.of(alert):
                    self._owe(alert, key)
            elif (told is SentState.OWED and muting.of(alert)) or (
                told is SentState.FIRING and not integration.settings.send_resolved
            ):
                self._state.tell(alert_id, key, None)
        resend_interval = integration.settings.resend_interval
        if resend_interval is not None and group.resend.get(key, 0) <= now:
            group.resend[key] = now + resend_interval
        if self._content(group, integration, muting, now) is not None:
            group.waiting.add(key)

    def _attempt(self, group: Group, integration: Integration, muting: Muting, now: int) -> AlertNotification | None:
        """A notification for an integration that is waiting, unless it must go on waiting."""
        key = integration.key
        line = self._lines[key]
        if key not in group.waiting or group.key in line.under_way:
            return None
        if not line.is_open(now) or group.refused.get(key, 0) > now:
            return None
        notification = self._content(group, integration, muting, now)
        group.waiting.discard(key)  # until it fails, or something changes while it is under way
        if notification is not None:
            line.under_way.add(group.key)
            for alert in notification.firing:
                if self._state.sent_state(alert.id, key) is SentState.OWED:
                    self._state.tell(alert.id, key, SentState.SENT)
        return notification

    def _content(self, group: Group, integration: Integration, muting: Muting, now: int) -> AlertNotification | None:
        """What an integration is to be told of a group now; None for nothing new."""
        firing: list[Alert] = []
        resolved: list[Alert] = []
        changed = False
        for alert_id in group.alerts:
            alert = self._state.alerts[alert_id]
            told = self._state.sent_state(alert_id, integration.key)
            if alert.is_firing:
                if not muting.of(alert):
                    firing.append(alert)
                    changed |= told in (SentState.OWED, SentState.SENT)
            elif told is not None:
                resolved.append(alert)
                changed = True
        if not changed and not (firing and self._is_repeat(group, integration, now)):
            return None
        return AlertNotification(
            integration=integration.key,
            receiver=group.route.receiver,
            group_key=group.key,
            group_labels=group.labels,
            firing=tuple(sorted(firing, key=_by_start)),
            resolved=tuple(sorted(resolved, key=_by_start)),
            at=now,
        )

    def _is_repeat(self, group: Group, integration: Integration, now: int) -> bool:
        settings = integration.settings
        if settings.resend_interval is None and not settings.repeats:
            return False
        interval = settings.resend_interval or group.route.repeat_interval
        return now - self._state.sent.get((integration.key, group.key), -NEVER) >= interval

    def _owe(self, alert: Alert, key: str) -> None:
        if self._state.sent_state(alert.id, key) is None:
            self._state.tell(alert.id, key, SentState.OWED)

    def _on_delivered(self, group: Group, key: str, now: int) -> None:
        self._state.sent.put((key, group.key), now)
        group.refused.pop(key, None)
        for integration in self._integrations(group):
            if integration.key == key and (interval := integration.settings.resend_interval) is not None:
                group.resend[key] = now + interval

    def _count(self, notification: AlertNotification, outcome: NotificationOutcome, now: int, error: str) -> None:
        key = notification.integration
        counts = self._state.counts.get(key, IntegrationCounts())
        if outcome is NotificationOutcome.DELIVERED:
            counts = attrs.evolve(
                counts, delivered=counts.delivered + 1, alerts=counts.alerts + len(notification.alerts), last_error=""
            )
        else:
            counts = attrs.evolve(counts, failed=counts.failed + 1, last_error=error)
        self._state.counts.put(key, attrs.evolve(counts, last_at=now))


def _by_start(alert: Alert) -> tuple[int, str]:
    return alert.starts_ns, alert.id
