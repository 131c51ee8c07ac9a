"""The tree of routes: which receiver learns of an alert, in which group, and how often. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs

from qmf.pipeline.notifying.inhibition import InhibitRule
from qmf.pipeline.notifying.matchers import Matcher, all_match

SECOND = 10**9

#: Alertmanager's defaults.
GROUP_WAIT, GROUP_INTERVAL, REPEAT_INTERVAL = 30 * SECOND, 300 * SECOND, 4 * 3600 * SECOND

#: In `group_by`: by all labels, so that each alert is a group of its own.
ALL_LABELS = "..."


@attrs.frozen(kw_only=True)
class Route:
    """A node of the tree.

    Attributes:
        key: identifies the node, made from the matchers on the way to it.
        receiver: name of the receiver.
        matchers: all must match; the root has none.
        group_by: labels whose values define a group, or `ALL_LABELS`; none for one group of all.
        group_wait: ns from the start of a group's first alert to its first notification.
        group_interval: ns between looks at a group that was notified.
        repeat_interval: ns after which a notification is repeated while nothing changed.
        continues: the siblings after this node are tried as well.
        routes: children; the first one that matches takes the alert.
    """

    key: str = "{}"
    receiver: str
    matchers: tuple[Matcher, ...] = ()
    group_by: tuple[str, ...] = ()
    group_wait: int = GROUP_WAIT
    group_interval: int = GROUP_INTERVAL
    repeat_interval: int = REPEAT_INTERVAL
    continues: bool = False
    routes: tuple[Route, ...] = ()

    def find(self, labels: Mapping[str, str]) -> list[Route]:
        """The deepest nodes that match; none where this one doesn't."""
        if not all_match(self.matchers, labels):
            return []
        found: list[Route] = []
        for child in self.routes:
            matching = child.find(labels)
            found += matching
            if matching and not child.continues:
                break
        return found or [self]

    def group_labels(self, labels: Mapping[str, str]) -> dict[str, str]:
        """The labels of an alert's group."""
        names = sorted(labels) if ALL_LABELS in self.group_by else self.group_by
        return {name: labels[name] for name in names if name in labels}

    def group_key(self, labels: Mapping[str, str]) -> str:
        """Identifies the group of an alert with these labels, as Alertmanager writes it."""
        pairs = (str(Matcher(name, value)) for name, value in sorted(self.group_labels(labels).items()))
        return f"{self.key}:{{{', '.join(pairs)}}}"

    def walk(self) -> Iterator[Route]:
        """This node and all below it."""
        yield self
        for child in self.routes:
            yield from child.walk()


@attrs.frozen(kw_only=True)
class Integration:
    """One way in which a receiver is notified, as the dispatcher sees it.

    Attributes:
        key: unique, and the same after a restart: receiver, kind and number.
        send_resolved: it is notified of the end of alerts.
        resend_interval: ns after which firing alerts are sent again although nothing changed, because it would forget
            them; None for the route's `repeat_interval`.
        repeats: it wants repetitions after the route's `repeat_interval`.
    """

    key: str
    send_resolved: bool = True
    resend_interval: int | None = None
    repeats: bool = True


@attrs.frozen(kw_only=True)
class NotificationPlan:
    """What a configuration says about who is notified of what.

    Attributes:
        route: root of the tree.
        receivers: the integrations of each receiver, by its name.
        inhibit: the inhibition rules.
    """

    route: Route
    receivers: Mapping[str, Sequence[Integration]]
    inhibit: tuple[InhibitRule, ...] = ()
