"""Other brokers, and the links to them, as observers see them."""

from __future__ import annotations

from typing import Protocol

from qmf.broker.nodes.observed_clients import ClientSession
from qmf.broker.nodes.observed_definitions import ObservedDefinition, ObservedState


class PeerDomain(ObservedDefinition, Protocol):
    """Another broker, to which this one has links; its `fields` have its password. Compared by identity."""

    @property
    def url(self) -> str:
        """Where the broker is, without a password."""

    @property
    def mechanisms(self) -> tuple[str, ...] | None:
        """Names of SASL mechanisms that may be used; None for the strongest that is offered."""

    @property
    def username(self) -> str | None:
        """Who logs in, or None."""


class PeerLink(ObservedDefinition, ObservedState, Protocol):
    """A link of this broker to another one, whether or not it is up. Compared by identity.

    Its kind is ``incoming``, ``outgoing`` or ``link``.
    """

    @property
    def place(self) -> tuple[str, int, bool]:
        """Host and port of the other broker, and whether with TLS."""

    @property
    def session(self) -> ClientSession | None:
        """The other broker on the link's connection; None while there is none."""


class BridgeProperties(Protocol):
    """What was asked for of a bridge; the names are those of qpidd, in Python's spelling."""

    @property
    def src(self) -> str:
        """Where its messages come from."""

    @property
    def dest(self) -> str:
        """Where they go."""

    @property
    def key(self) -> str:
        """Binding key of those that are forwarded."""

    @property
    def tag(self) -> str:
        """Id that is added to their traces; empty for that of the broker."""

    @property
    def excludes(self) -> str:
        """Ids of brokers; messages that have left one of them are not forwarded."""

    @property
    def src_is_queue(self) -> bool:
        """`src` is a queue."""

    @property
    def src_is_local(self) -> bool:
        """Messages go from this broker to the other one."""

    @property
    def dynamic(self) -> bool:
        """What is bound at this broker says which messages are forwarded."""

    @property
    def sync(self) -> int:
        """Messages that are acknowledged together, as asked for."""

    @property
    def credit(self) -> int:
        """Messages in flight at most, as asked for."""


class PeerBridge(ObservedDefinition, ObservedState, Protocol):
    """A route on a link of kind ``link``, whether or not it is up. Compared by identity."""

    @property
    def link(self) -> PeerLink:
        """That it belongs to."""

    @property
    def bridge(self) -> BridgeProperties:
        """What was asked for."""
