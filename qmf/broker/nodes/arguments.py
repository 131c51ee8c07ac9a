"""Arguments of new queues and exchanges, by the names that qpidd knows, and what they mean.

Values may be texts: management tools send numbers so. An argument that is not known is kept; whoever asks to be strict
is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from qmf.broker.nodes.last_values import Replacement
from qmf.broker.nodes.priorities import MAX_LEVELS
from qmf.broker.nodes.settings import (
    ExchangeSettings,
    Lifetime,
    OverflowPolicy,
    QueueLimits,
    QueueSettings,
    Threshold,
)

#: The application property with a message's key, in a last value queue that does not name one.
LVQ_KEY = "qpid.LVQ_key"
_ALIASES = {
    "x-qpid-priorities": "qpid.priorities",
    "x-qpid-fairshare": "qpid.fairshare",
    "x-qpid-minimum-alert-repeat-gap": "qpid.alert_repeat_gap",
    "x-qpid-maximum-message-count": "qpid.alert_count",
    "x-qpid-maximum-message-size": "qpid.alert_size",
    "qpid.alert_count_up": "qpid.alert_count",
    "qpid.alert_size_up": "qpid.alert_size",
    "qpid.maximum_delivery_count": "x-qpid-maximum-delivery-count",
}
_SHARE = re.compile(r"(?:qpid\.fairshare|x-qpid-fairshare)[-.](\d+)$")
#: Argument of the queue of a subscription that outlives its links: the exchange.
SUBSCRIPTION = "qmf.subscription"
#: Argument of the queue of a client of MQTT: its client id; empty for that of a shared subscription.
MQTT_SESSION = "qmf.mqtt-session"
#: Argument of the queue that a link to another broker has at an exchange: name of the link.
LINK_QUEUE = "qmf.link"
#: Another one of it: the container id of the client whose own messages are left out.
EXCLUDED = "qmf.excluded"
#: Arguments without a meaning here that qpidd and its modules accept: its journal's, those of AMQP 0-10, of its
#: clusters and of its replication, and the time between alerts, which are raised once until the queue has drained.
_WITHOUT_EFFECT = frozenset(
    {
        SUBSCRIPTION,
        LINK_QUEUE,
        MQTT_SESSION,
        "qpid.efp_partition_num",
        "qpid.efp_pool_file_size",
        "qpid.file_count",
        "qpid.file_size",
        "qpid.persist_last_node",
        "qpid.replicate",
        "qpid.trace.id",
        "qpid.max_pages_loaded",
        "qpid.page_factor",
        "qpid.alert_repeat_gap",
    }
)


class NodeArgumentError(ValueError):
    """An argument has a wrong value; the message names it."""


class Arguments:
    """The arguments of a node; each that is read is known.

    Attributes:
        unknown: names of the others, in their order.
    """

    def __init__(self, values: Mapping[str, object]) -> None:
        self._values = {_ALIASES.get(name, name): value for name, value in values.items()}
        self.unknown = [name for name in self._values if name not in _WITHOUT_EFFECT]

    def pop(self, name: str) -> object | None:
        """The value of an argument, or None."""
        if name in self.unknown:
            self.unknown.remove(name)
        return self._values.get(name)

    def boolean(self, name: str) -> bool:
        """True or false; false where it is missing.

        Raises:
            ArgumentError: it is neither.
        """
        value = self.pop(name)
        if isinstance(value, str) and value.lower() in ("true", "false", "1", "0"):
            return value.lower() in ("true", "1")
        if value is None or (isinstance(value, int) and value in (0, 1)):
            return bool(value)
        raise NodeArgumentError(f"{name}: must be true or false, not {value!r}")

    def number(self, name: str, most: int = (1 << 63) - 1) -> int | None:
        """A number from 0; None where it is missing.

        Raises:
            ArgumentError: it is none, or above `most`.
        """
        value = self.pop(name)
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= most):
            return None if value is None else int(value)
        raise NodeArgumentError(f"{name}: must be a number from 0{'' if most >> 62 else f' to {most}'}, not {value!r}")

    def text(self, name: str) -> str:
        """A text; empty where it is missing.

        Raises:
            ArgumentError: it is none.
        """
        value = self.pop(name)
        if value is not None and not isinstance(value, str):
            raise NodeArgumentError(f"{name}: must be text, not {value!r}")
        return value or ""

    def choice(self, name: str, choices: Mapping[str, Any], default: Any) -> Any:
        """One of several values, by name.

        Raises:
            ArgumentError: it is another one.
        """
        value = self.pop(name)
        if value is None:
            return default
        if str(value) not in choices:
            raise NodeArgumentError(
                f"{name}: must be {', '.join(name for name in choices if '_' not in name)}, not {value!r}"
            )
        return choices[str(value)]

    def threshold(self, name: Callable[[str], str]) -> Threshold:
        """The threshold whose two arguments are `name` of ``count`` and of ``size``."""
        return Threshold(self.number(name("count")), self.number(name("size")))

    def shares(self) -> dict[int, int]:
        """The shares of single levels of priority."""
        found = {int(match[1]): name for name in list(self._values) if (match := _SHARE.match(name)) is not None}
        return {level: self.number(name) or 0 for level, name in found.items()}


_GROUP_KEY = "qpid.group_header_key"
_POLICIES = {policy.value: policy for policy in OverflowPolicy}
_POLICIES |= {name.replace("-", "_"): policy for name, policy in _POLICIES.items()} | {"none": OverflowPolicy.REJECT}
_LIFETIMES: dict[str, Lifetime | None] = {"manual": None} | {lifetime.value: lifetime for lifetime in Lifetime}


def read_queue_arguments(arguments: Arguments, queue: QueueSettings, default: QueueLimits) -> QueueSettings:
    """The settings of a queue.

    Args:
        arguments: are read.
        queue: the settings that don't come from arguments.
        default: limits that no argument gives.

    Raises:
        ArgumentError: an argument is wrong, or does not go with another one.
    """
    delay = arguments.number("qpid.auto_delete_timeout", 1 << 31) or 0
    queue = attrs.evolve(queue, delete_delay=delay, auto_delete=queue.auto_delete or delay > 0)
    if (policy := arguments.pop("qpid.lifetime-policy")) is not None:
        if policy not in _LIFETIMES:
            raise NodeArgumentError(f"qpid.lifetime-policy: must be {', '.join(_LIFETIMES)}, not {policy!r}")
        lifetime = _LIFETIMES[str(policy)]
        queue = attrs.evolve(queue, lifetime=lifetime or Lifetime.UNUSED, auto_delete=lifetime is not None)
    key, replacement = _last_values(arguments)
    paging = arguments.boolean("qpid.paging")
    settings = attrs.evolve(
        queue,
        limits=_limits(arguments, default),
        overflow=arguments.choice(
            "qpid.policy_type", _POLICIES, OverflowPolicy.FLOW_TO_DISK if paging else queue.overflow
        ),
        value_key=key,
        replacement=replacement,
        priorities=arguments.number("qpid.priorities", MAX_LEVELS) or 0,
        fairshare=arguments.number("qpid.fairshare") or 0,
        shares=arguments.shares(),
        group_key=arguments.text(_GROUP_KEY),
        group_timestamp=arguments.boolean("qpid.group_timestamp"),
        flow_stop=arguments.threshold("qpid.flow_stop_{}".format),
        flow_resume=arguments.threshold("qpid.flow_resume_{}".format),
        alert_up=arguments.threshold("qpid.alert_{}".format),
        alert_down=arguments.threshold("qpid.alert_{}_down".format),
        max_deliveries=arguments.number("x-qpid-maximum-delivery-count") or 0,
        browse_only=arguments.boolean("qpid.browse-only"),
        no_local=arguments.boolean("no-local"),
        excluded=arguments.text(EXCLUDED),
        filter=arguments.text("qpid.filter"),
        excluded_traces=tuple(arguments.text("qpid.trace.exclude").replace(",", " ").split()),
        sequence_key=arguments.text("qpid.queue_msg_sequence"),
        event_generation=arguments.number("qpid.queue_event_generation", 2) or 0,
    )
    shared = arguments.boolean("qpid.shared_msg_group")
    _check(settings, shared=shared, paging=paging)
    return settings


def read_exchange_arguments(arguments: Arguments, exchange: ExchangeSettings) -> ExchangeSettings:
    """The settings of an exchange; arguments as of `read_queue_arguments`."""
    # As with qpidd, their presence counts, whatever the value.
    return attrs.evolve(
        exchange,
        sequence=arguments.pop("qpid.msg_sequence") is not None,
        initial_value=arguments.pop("qpid.ive") is not None,
    )


def _limits(arguments: Arguments, default: QueueLimits) -> QueueLimits:
    count, size = arguments.number("qpid.max_count"), arguments.number("qpid.max_size")
    return QueueLimits(
        default.count if count is None else count or None, default.size if size is None else size or None
    )


def _last_values(arguments: Arguments) -> tuple[str, Replacement | None]:
    key = arguments.text("qpid.last_value_queue_key")
    older, no_browse = arguments.pop("qpid.last_value_queue"), arguments.pop("qpid.last_value_queue_no_browse")
    header = arguments.text(LVQ_KEY)
    if key:
        return key, Replacement.AT_END
    if no_browse not in (None, 0, False):
        return header or LVQ_KEY, Replacement.IN_PLACE_BROWSED
    if older not in (None, 0, False):
        return header or LVQ_KEY, Replacement.IN_PLACE
    return "", None


def _check(settings: QueueSettings, *, shared: bool, paging: bool) -> None:
    """Refuse combinations that make no sense, in qpidd's words."""
    orders = {
        "qpid.last_value_queue_key": settings.replacement is not None,
        "qpid.priorities": bool(settings.priorities),
        _GROUP_KEY: bool(settings.group_key),
        "qpid.paging": paging,
    }
    match [name for name, chosen in orders.items() if chosen]:
        case [one, other, *_]:
            raise NodeArgumentError(f"Cannot specify {one} and {other} for the same queue")
    _check_shares(settings)
    _check_groups(settings, shared=shared)
    _check_flow("count", settings.flow_stop.count, settings.flow_resume.count, settings.limits.count)
    _check_flow("size", settings.flow_stop.size, settings.flow_resume.size, settings.limits.size)


def _check_shares(settings: QueueSettings) -> None:
    if (settings.shares or settings.fairshare) and not settings.priorities:
        raise NodeArgumentError("Cannot specify fairshare settings when queue is not enabled for priorities")
    if any(level >= settings.priorities for level in settings.shares):
        raise NodeArgumentError(f"Cannot have fairshare set for priority levels greater than {settings.priorities}")


def _check_groups(settings: QueueSettings, *, shared: bool) -> None:
    for name, given in (("qpid.shared_msg_group", shared), ("qpid.group_timestamp", settings.group_timestamp)):
        if given and not settings.group_key:
            raise NodeArgumentError(f"Can only specify {name} if {_GROUP_KEY} is set")
    if settings.group_key and not shared:
        raise NodeArgumentError(
            f"Only shared groups are supported at present; qpid.shared_msg_group is required if {_GROUP_KEY} is set"
        )


def _check_flow(name: str, stop: int | None, resume: int | None, most: int | None) -> None:
    if stop and resume and resume > stop:
        raise NodeArgumentError(
            f"qpid.flow_resume_{name}={resume} must be less or equal to qpid.flow_stop_{name}={stop}"
        )
    if stop and most is not None and most < stop:
        raise NodeArgumentError(f"qpid.flow_stop_{name}={stop} must be less than qpid.max_{name}={most}")
