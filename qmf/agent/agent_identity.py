"""The identity of an agent: its name, and the number of its start (QMF2.md 4.2)."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

import attrs

from qmf.protocol.values import AgentInfo


@attrs.frozen(kw_only=True)
class AgentIdentity:
    """Name, epoch and attributes of an agent, from start to end.

    Attributes:
        vendor, product, instance: parts of the name.
        epoch: number of the start, from 1.
        direct_subject: key on the topic exchange that reaches this run of the agent, too.
        interval: seconds between heartbeats.
        attributes: set by the application and, for consoles of this project, by the library.
    """

    vendor: str
    product: str
    instance: str
    epoch: int
    interval: float
    direct_subject: str = attrs.field(factory=lambda: f"direct-agent.route.{uuid4()}")
    attributes: Mapping[str, object] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        """``vendor:product:instance``."""
        return f"{self.vendor}:{self.product}:{self.instance}"

    def info(self, now: int, schema_updated: int) -> AgentInfo:
        """The content of heartbeats and locate responses.

        Args:
            now: time of the message, ns since 1970.
            schema_updated: time of the last new schema, ns since 1970, or 0.
        """
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
            attributes=self.attributes,
        )
