"""Brokers for tests: what a `Peer` does with the links that are requested and the messages that arrive."""

from __future__ import annotations

from bus.peer import Peer
from support.recording import message

from qmf.bus.engine.events import Delivery, EngineEvent, LinkRequested
from qmf.bus.engine.values import Outcome, Terminus


class ScriptedBroker:
    """A broker that grants all links and accepts all messages, unless its attributes are changed."""

    def __init__(self) -> None:
        #: Links to refuse, then links to grant.
        self.refuse = 0
        #: Detach a sending client's link at each message, so many times.
        self.detach = 0
        self.outcome = Outcome.ACCEPTED
        self.silent = False
        self.credit = 100
        self.requests: list[Terminus | None] = []

    def __call__(self, peer: Peer, event: EngineEvent) -> None:
        if isinstance(event, LinkRequested):
            self.requests.append(event.link.source if event.link.is_sender else event.link.target)
            if self.refuse:
                self.refuse -= 1
                peer.engine.links.refuse(event.link, "amqp:unauthorized-access", "not you")
            else:
                peer.grant(event.link, self.credit)
        elif isinstance(event, Delivery):
            if self.detach:
                self.detach -= 1
                peer.engine.links.detach(event.link, "amqp:precondition-failed", "bad message")
            elif not self.silent:
                assert event.delivery_tag is not None
                error = ("amqp:not-allowed", "no") if self.outcome is Outcome.REJECTED else ("", "")
                peer.engine.decisions.settle(event.link, event.delivery_tag, self.outcome, *error)


DATA = message("somewhere", "x", "hello")


class GrantingBroker:
    """A broker that grants all links but those to addresses with `gone` in them, and accepts all messages."""

    def __init__(self) -> None:
        self.links = 0
        self.refuse = False

    def __call__(self, peer: Peer, event: EngineEvent) -> None:
        if isinstance(event, LinkRequested):
            node = event.link.source if event.link.is_sender else event.link.target
            self.links += 1
            if self.refuse or (node is not None and "gone" in (node.address or "")):
                peer.engine.links.refuse(event.link, "amqp:not-found", "no such node")
            else:
                peer.grant(event.link)
        elif isinstance(event, Delivery) and event.delivery_tag is not None:
            peer.engine.decisions.settle(event.link, event.delivery_tag)
