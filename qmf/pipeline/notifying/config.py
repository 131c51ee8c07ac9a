"""A configuration of notifications as values: routes, and receivers. Pure; `config_file` reads it from TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from qmf.pipeline.notifying.matchers import Matcher, all_match
from qmf.pipeline.notifying.muting import InhibitRule
from qmf.pipeline.notifying.receivers.base import BusConfig, ReceiverSettings

SECOND = 10**9

#: Alertmanager's defaults.
GROUP_WAIT, GROUP_INTERVAL, REPEAT_INTERVAL = 30 * SECOND, 300 * SECOND, 4 * 3600 * SECOND

#: In `group_by`: by all labels, so that each alert is a group of its own.
ALL_LABELS = "..."

#: Name of the receiver of `--raise`.
BUS_RECEIVER = "bus"


@attrs.frozen(kw_only=True)
class Route:
    """A node of the tree."""

    key: str = "{}"  #: identifies the node, made from the matchers on the way to it
    receiver: str  #: name of the receiver
    matchers: tuple[Matcher, ...] = ()  #: all must match; the root has none
    group_by: tuple[str, ...] = ()  #: labels whose values define a group, or `ALL_LABELS`; none for one group of all
    group_wait: int = GROUP_WAIT  #: ns from the start of a group's first alert to its first notification
    group_interval: int = GROUP_INTERVAL  #: ns between looks at a group that was notified
    repeat_interval: int = REPEAT_INTERVAL  #: ns after which a notification is repeated while nothing changed
    continues: bool = False  #: the siblings after this node are tried as well
    routes: tuple[Route, ...] = ()  #: children; the first one that matches takes the alert

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


@attrs.frozen
class Integration:
    """One way in which a receiver is notified; the key, ``RECEIVER/KIND/NUMBER``, is the same after a restart."""

    key: str
    settings: ReceiverSettings


@attrs.frozen(kw_only=True)
class NotifyConfig:
    """Who is notified of what: the root of the routes, and the integrations of each receiver, by its name.

    The inhibition rules are None where the configuration says nothing about them.
    """

    route: Route
    receivers: Mapping[str, Sequence[Integration]]
    inhibit: tuple[InhibitRule, ...] | None = None

    @property
    def integrations(self) -> dict[str, Integration]:
        """All integrations by their keys."""
        return {item.key: item for items in self.receivers.values() for item in items}

    @property
    def uses_bus(self) -> bool:
        """True where a receiver is the bus."""
        return any(isinstance(item.settings, BusConfig) for item in self.integrations.values())


def bus_config() -> NotifyConfig:
    """What `--raise` means: each alert goes to the bus by itself, at once."""
    return NotifyConfig(
        route=Route(receiver=BUS_RECEIVER, group_by=(ALL_LABELS,), group_wait=0, group_interval=0),
        receivers={BUS_RECEIVER: (Integration(f"{BUS_RECEIVER}/bus/0", BusConfig()),)},
    )


def with_bus(config: NotifyConfig) -> NotifyConfig:
    """A configuration with `--raise`: the bus gets every alert at once, the others what the routes say."""
    if config.uses_bus:
        return config
    name = BUS_RECEIVER
    while name in config.receivers:
        name += "-"
    bus = attrs.evolve(bus_config().route, key="{}/raise", receiver=name, continues=True)
    root = attrs.evolve(config.route, key="{}/all", routes=(bus, config.route))
    receivers = {**config.receivers, name: (Integration(f"{name}/bus/0", BusConfig()),)}
    return attrs.evolve(config, route=root, receivers=receivers)
