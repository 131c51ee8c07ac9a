"""A configuration of notifications as values. Pure; `config_file` reads it from TOML."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from qmf.pipeline.notifying.muting import InhibitRule
from qmf.pipeline.notifying.receivers.base import ReceiverSettings
from qmf.pipeline.notifying.receivers.bus import BusConfig
from qmf.pipeline.notifying.routes import ALL_LABELS, Route

#: Name of the receiver of `--raise`.
BUS_RECEIVER = "bus"


@attrs.frozen
class Integration:
    """One way in which a receiver is notified.

    Attributes:
        key: unique, and the same after a restart: ``RECEIVER/KIND/NUMBER``.
        settings: of the kind.
    """

    key: str
    settings: ReceiverSettings


@attrs.frozen(kw_only=True)
class NotifyConfig:
    """Who is notified of what.

    Attributes:
        route: root of the tree.
        receivers: the integrations of each receiver, by its name.
        inhibit: the inhibition rules; None where the configuration says nothing about them.
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
