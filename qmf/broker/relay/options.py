"""Whether a broker relays messages to other domains, and what it allows."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable

import attrs

from qmf.errors import CallerError

#: Seconds that a message waits for its transfer unless the relay says otherwise: five days, as in mail.
TIMEOUT = 432_000.0


class UnknownDomains(enum.Enum):
    """What is done with messages to a domain without a relay."""

    REFUSE = "refuse"  #: their sender learns that there is none
    PARK = "park"  #: they wait until there is one, or their time is over


def _names(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value)


def _users(value: Iterable[str]) -> frozenset[str]:
    return frozenset(value)


def _positive(_: object, attribute: attrs.Attribute[float], value: float) -> None:
    if not 0 < value < math.inf:
        raise CallerError(f"{attribute.name} of relaying must be a positive number of seconds, not {value!r}")


@attrs.frozen(kw_only=True)
class RelayOptions:
    """Relaying at a broker.

    Attributes:
        enabled: messages to ``name@domain`` are relayed. Otherwise these are names like others.
        local_domains: that stand for this broker, besides ``localhost`` and none: ``name@domain`` is ``name`` then.
        unknown_domains: what is done with messages to a domain without a relay.
        timeout: seconds that a message waits for its transfer, unless its relay says otherwise.
        agents: users whose messages may name another user as their sender: transfer agents of other brokers.
        srv_domains: domains whose brokers may be looked up in the DNS; ``*.example.org`` stands for all below one.
        resolver: host and port of a DNS server, such as ``192.0.2.1:53``; empty for those of the system.
    """

    enabled: bool = False
    local_domains: tuple[str, ...] = attrs.field(default=(), converter=_names)
    unknown_domains: UnknownDomains = UnknownDomains.REFUSE
    timeout: float = attrs.field(default=TIMEOUT, validator=_positive)
    agents: frozenset[str] = attrs.field(default=frozenset(), converter=_users)
    srv_domains: tuple[str, ...] = attrs.field(default=(), converter=_names)
    resolver: str = ""
