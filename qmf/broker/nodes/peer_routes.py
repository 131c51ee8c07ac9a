"""What observers see of routes: what transfers messages between this broker and another one."""

from __future__ import annotations

from typing import Protocol

import attrs

from qmf.broker.nodes.observed_definitions import ObservedDefinition, ObservedState


@attrs.frozen
class RouteEnds:
    """Where the messages of a route come from and go to.

    Attributes:
        link: name of the link that it is, or is on.
        outgoing: they leave this broker.
        source, target: names of the nodes.
        key: binding key of an exchange as source, or subjects of a queue; empty for all.
        dynamic: what is bound at this broker says which are forwarded.
    """

    link: str
    outgoing: bool
    source: str
    target: str
    key: str
    dynamic: bool = False


@attrs.frozen
class RouteMeasure:
    """How far a route is behind.

    Attributes:
        waiting: messages at its source; None if that is not known.
        behind: seconds that the oldest of them has waited, as far as was measured; 0 if none waits.
    """

    waiting: int | None = None
    behind: float = 0.0


class PeerRoute(ObservedDefinition, ObservedState, Protocol):
    """An incoming or outgoing link, or a bridge, whether or not it is up. Compared by identity."""

    @property
    def ends(self) -> RouteEnds:
        """Where its messages come from and go to."""

    @property
    def place(self) -> tuple[str, int, bool]:
        """Host and port of the other broker, and whether with TLS."""

    @property
    def peer_id(self) -> str:
        """Id of the other broker in traces; empty while it is not known."""

    @property
    def is_up(self) -> bool:
        """Messages pass."""

    @property
    def losses(self) -> int:
        """Times that it was up and then was not."""

    @property
    def transfers(self) -> int:
        """Messages transferred, repeated ones included, over all of its connections."""

    @property
    def credit(self) -> int:
        """Messages that may be transferred before the receiver grants more; 0 while it is not up."""

    def measure_rate(self) -> float:
        """Messages transferred a second since the last call; 0 at the first one."""

    @property
    def count_unforwarded(self) -> int:
        """Messages that it has not forwarded, since they would go in a circle."""

    @property
    def count_in_doubt(self) -> int:
        """Messages that it has sent again, or put back, though the other broker may have had them."""

    def measure(self) -> RouteMeasure:
        """How far it is behind; of a source at the other broker, as that has answered to the last call."""
