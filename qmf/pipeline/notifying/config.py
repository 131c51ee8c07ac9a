"""A configuration of notifications as values. Pure; `config_file` reads it from TOML."""

from __future__ import annotations

import attrs

from qmf.pipeline.notifying.inhibition import InhibitRule
from qmf.pipeline.notifying.receivers.alertmanager import AlertmanagerConfig
from qmf.pipeline.notifying.receivers.file import FileConfig
from qmf.pipeline.notifying.receivers.mail import MailConfig
from qmf.pipeline.notifying.receivers.webhook import WebhookConfig
from qmf.pipeline.notifying.routes import ALL_LABELS, Integration, NotificationPlan, Route


@attrs.frozen(kw_only=True)
class BusConfig:
    """The bus: events and objects of the agent that `correlate` starts.

    Attributes:
        send_resolved: it is told of ends; always, since objects must go.
    """

    send_resolved: bool = True


Settings = WebhookConfig | AlertmanagerConfig | MailConfig | FileConfig | BusConfig


@attrs.frozen
class IntegrationConfig:
    """One way in which a receiver is notified.

    Attributes:
        key: unique: ``RECEIVER/KIND/NUMBER``.
        settings: of the kind.
    """

    key: str
    settings: Settings

    @property
    def integration(self) -> Integration:
        """What the dispatcher needs to know."""
        settings = self.settings
        return Integration(
            key=self.key,
            send_resolved=settings.send_resolved,
            resend_interval=settings.resend_interval if isinstance(settings, AlertmanagerConfig) else None,
            repeats=not isinstance(settings, BusConfig),
        )


@attrs.frozen(kw_only=True)
class NotifyConfig:
    """A configuration.

    Attributes:
        route: root of the tree.
        receivers: the integrations of each receiver, by its name.
        inhibit: the inhibition rules; None for the default.
    """

    route: Route
    receivers: dict[str, tuple[IntegrationConfig, ...]]
    inhibit: tuple[InhibitRule, ...] | None = None

    @property
    def integrations(self) -> dict[str, IntegrationConfig]:
        """All integrations by their keys."""
        return {item.key: item for items in self.receivers.values() for item in items}

    @property
    def uses_bus(self) -> bool:
        """True where a receiver is the bus."""
        return any(isinstance(item.settings, BusConfig) for item in self.integrations.values())

    def plan(self, default_inhibit: tuple[InhibitRule, ...]) -> NotificationPlan:
        """What the dispatcher needs to know.

        Args:
            default_inhibit: inhibition rules where the configuration has none.
        """
        return NotificationPlan(
            route=self.route,
            receivers={name: [item.integration for item in items] for name, items in self.receivers.items()},
            inhibit=default_inhibit if self.inhibit is None else self.inhibit,
        )


#: Name of the receiver of `--raise`.
BUS_RECEIVER = "bus"


def bus_config() -> NotifyConfig:
    """What `--raise` means: each alert goes to the bus by itself, at once."""
    return NotifyConfig(
        route=Route(receiver=BUS_RECEIVER, group_by=(ALL_LABELS,), group_wait=0, group_interval=0),
        receivers={BUS_RECEIVER: (IntegrationConfig(f"{BUS_RECEIVER}/bus/0", BusConfig()),)},
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
    integrations = (IntegrationConfig(f"{name}/bus/0", BusConfig()),)
    return attrs.evolve(config, route=root, receivers={**config.receivers, name: integrations})
