"""The options of an agent: the keyword arguments of `Agent`, checked once and then passed on as one value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path

import attrs

from qmf.agent.clock import Clock, SystemClock
from qmf.agent.epoch_file import EPOCH_MAX
from qmf.agent.layout.checks import checked_copy
from qmf.agent.publishing.event_rate_limiter import EventLimit
from qmf.agent.requests.access import Access
from qmf.agent.requests.call_audit import CallAudit
from qmf.agent.requests.subscription_handler import SubscriptionLimits
from qmf.bus.base import Bus
from qmf.errors import CallerError
from qmf.protocol import BodyForm
from qmf.schema import TYPES

_EVENT_LIMIT = EventLimit()
_SUBSCRIPTION_LIMITS = SubscriptionLimits()


def _name_part(_: object, attribute: attrs.Attribute[str], value: str) -> None:
    if not value or ":" in value:
        raise CallerError(f"the {attribute.name} of an agent must not be empty or contain ':', not {value!r}")


def _instance(_: object, __: object, value: str | None) -> None:
    if value == "":
        raise CallerError("the instance of an agent must not be empty")


def _epoch(_: object, __: object, value: int | None) -> None:
    if value is not None and not 1 <= value <= EPOCH_MAX:
        raise CallerError(f"the epoch of an agent must be 1 to {EPOCH_MAX}, not {value}")


def _interval(_: object, __: object, value: float) -> None:
    if not 0 < value < math.inf:
        raise CallerError(f"the interval of an agent must be a positive number of seconds, not {value!r}")


def _max_calls(_: object, __: object, value: int) -> None:
    if value < 1:
        raise CallerError(f"an agent must be able to run at least one method, not {value!r}")


def _method_timeout(_: object, __: object, value: float | None) -> None:
    if value is not None and not value > 0:
        raise CallerError(f"the time limit of methods must be a positive number of seconds, not {value!r}")


def _to_attributes(value: Mapping[str, object] | None) -> Mapping[str, object]:
    copy = checked_copy(value or {}, TYPES["map"], "the attributes of an agent")
    assert isinstance(copy, dict)
    return copy


def _to_path(value: str | Path | None) -> Path | None:
    return None if value is None else Path(value)


def _to_clock(value: Clock | None) -> Clock:
    return SystemClock() if value is None else value


@attrs.frozen(kw_only=True)
class AgentOptions:
    """The keyword arguments of `Agent`. CallerError if one is invalid.

    Attributes:
        vendor, product: name of the kind of agent, e.g. ``example.org``, ``mail``; without ``:``.
        instance: distinguishes agents of one kind. None: a new uuid, kept in `state_dir` if there is one.
        domain: part of the exchanges' names.
        aliases: further names for requests to this agent alone, such as ``broker`` for the agent inside a broker.
        interval: seconds between publications, and between heartbeats. Consoles receive it rounded up to seconds.
        attributes: facts about the agent by which consoles can select agents, e.g. ``{"site": "lab"}``.
        state_dir: folder that remembers how often the agent was started; for one agent at a time.
        epoch: number of this start, instead of counting; 1 to 4294967295, different at each start.
        form: encoding of message bodies; every peer understands the default.
        max_calls: methods that run at the same time; more calls wait.
        method_timeout: seconds after which the caller of a method gets an error, or None for no limit. An ``async``
            method is cancelled then; the result of any other method is dropped.
        method_threads: run methods that are not ``async`` on threads of their own, `max_calls` at most, so that one
            that blocks holds nothing else up. They must then be safe to run at the same time as each other and as the
            rest of the program.
        debug: send tracebacks to consoles, in the value ``traceback`` of exceptions. They reveal the inside of the
            program: don't use it where strangers can call methods.
        access: decides on queries, method calls, property changes and subscriptions. None allows all.
        audit: raise an event for each method call and property change, with the caller's user id; None for no events.
        publish_data: publish changes of objects. Without, consoles query or subscribe.
        publish_events: send events; without, `Agent.raise_event` only checks them.
        numbering: number the messages that are published, so that consoles of this project notice losses.
        goodbye: mark the last heartbeat as the last one when the agent closes; other consoles see a plain heartbeat.
        event_limit: number of events of a class and severity that are sent before further ones are suppressed; None for
            no limit.
        subscription_limits: limits of subscriptions by consoles of this project; None refuses all.
        wait: if the broker cannot be reached when the agent starts, go on trying in the background. False: an error of
            `Agent.start`.
        clock: the source of the time; for tests.
    """

    vendor: str = attrs.field(validator=_name_part)
    product: str = attrs.field(validator=_name_part)
    instance: str | None = attrs.field(default=None, validator=_instance)
    domain: str = "default"
    aliases: tuple[str, ...] = ()
    interval: float = attrs.field(default=10.0, validator=_interval)
    attributes: Mapping[str, object] = attrs.field(default=None, converter=_to_attributes)
    state_dir: Path | None = attrs.field(default=None, converter=_to_path)
    epoch: int | None = attrs.field(default=None, validator=_epoch)
    form: BodyForm = BodyForm.DATA010
    max_calls: int = attrs.field(default=16, validator=_max_calls)
    method_timeout: float | None = attrs.field(default=None, validator=_method_timeout)
    method_threads: bool = False
    debug: bool = False
    access: Access | None = None
    audit: CallAudit | None = None
    publish_data: bool = True
    publish_events: bool = True
    numbering: bool = True
    goodbye: bool = True
    event_limit: EventLimit | None = _EVENT_LIMIT
    subscription_limits: SubscriptionLimits | None = _SUBSCRIPTION_LIMITS
    wait: bool = True
    clock: Clock = attrs.field(default=None, converter=_to_clock)


@attrs.frozen
class AgentArguments(AgentOptions):
    """All arguments of `Agent`.

    Attributes:
        url_or_bus: the broker's URL, or a bus.
    """

    url_or_bus: str | Bus
