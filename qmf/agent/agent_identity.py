"""Who an agent is: its name, and the number of its start (QMF2.md 4.2).

The epoch tells consoles that an agent was restarted and that ids of its earlier objects are void. It has to differ from
start to start:

* with a state directory, starts are counted in a file there;
* without one, it is the time of the start, in seconds since 1970, as a 32-bit number: it needs no memory, differs when
  starts are a second apart, and fits the field that C++ consoles read it into.

A state directory belongs to one agent at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import attrs

from qmf.agent.epoch_file import EPOCH_MAX, count_start
from qmf.errors import CallerError
from qmf.protocol.values import AgentInfo

#: Longest name in UTF-8. Routing keys over 255 bytes are cut by AMQP 0-10 brokers (QMF2.md 1.1), and the longest prefix
#: of a key without class names is ``agent.ind.heartbeat.``.
MAX_NAME = 255 - len("agent.ind.heartbeat.")


@attrs.frozen(kw_only=True)
class AgentIdentity:
    """Who an agent is, from start to end.

    Attributes:
        vendor, product, instance: parts of the name.
        epoch: number of the start, from 1.
        direct_subject: key on the topic exchange that reaches this run of the agent, too.
        interval: seconds between heartbeats.
        attributes: what the application adds.
        extras: what the library adds for its own consoles.
    """

    vendor: str
    product: str
    instance: str
    epoch: int
    interval: float
    direct_subject: str = attrs.field(factory=lambda: f"direct-agent.route.{uuid4()}")
    attributes: Mapping[str, object] = attrs.field(factory=dict)
    extras: Mapping[str, object] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        """``vendor:product:instance``."""
        return f"{self.vendor}:{self.product}:{self.instance}"

    def info(self, now: int, schema_updated: int) -> AgentInfo:
        """What the agent says of itself at time `now` (ns since 1970)."""
        return AgentInfo(
            name=self.name,
            vendor=self.vendor,
            product=self.product,
            instance=self.instance,
            epoch=self.epoch,
            heartbeat_interval=self.interval,
            timestamp=now,
            schema_updated=schema_updated,
            capability=1,
            direct_subject=self.direct_subject,
            attributes={**self.attributes, **self.extras},
        )


def make_identity(
    *,
    vendor: str,
    product: str,
    instance: str | None,
    interval: float,
    attributes: Mapping[str, object],
    state_dir: Path | None,
    epoch: int | None,
    now: int,
    extras: Mapping[str, object] | None = None,
) -> AgentIdentity:
    """Find out who an agent is at this start.

    Args:
        vendor, product: fixed parts of the name; not empty, without ``:``, at which consoles split.
        instance: tells agents of one product apart. None: kept in the state directory, else a new uuid.
        interval: seconds between heartbeats.
        attributes: what the application adds.
        state_dir: where starts are counted; made when it is not there.
        epoch: use this instead of counting.
        now: time of the start, ns since 1970.
        extras: what the library adds to the attributes.

    Raises:
        CallerError: a part of the name is invalid, or the state directory cannot be written.
    """
    for what, part in (("vendor", vendor), ("product", product)):
        if not part or ":" in part:
            raise CallerError(f"the {what} of an agent must not be empty or contain ':', not {part!r}")
    if instance == "":
        raise CallerError("the instance of an agent must not be empty")
    if epoch is not None and not 1 <= epoch <= EPOCH_MAX:
        raise CallerError(f"the epoch of an agent must be 1 to {EPOCH_MAX}, not {epoch}")
    if state_dir is not None:
        instance, counted = count_start(state_dir, (vendor, product), instance, time_epoch(now))
        epoch = epoch or counted
    identity = AgentIdentity(
        vendor=vendor,
        product=product,
        instance=instance or str(uuid4()),
        epoch=epoch or time_epoch(now),
        interval=interval,
        attributes=dict(attributes),
        extras=dict(extras or {}),
    )
    if len(identity.name.encode()) > MAX_NAME:
        raise CallerError(f"the name of an agent must have at most {MAX_NAME} bytes: {identity.name}")
    return identity


def time_epoch(now: int) -> int:
    """The time as an epoch, from 1."""
    return (now // 1_000_000_000) & EPOCH_MAX or 1
