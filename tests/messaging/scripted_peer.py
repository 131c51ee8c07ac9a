"""A scripted AMQP 1.0 peer on a thread of its own, for the synchronous API."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bus.peer import Peer, serving
from support.recording import message
from support.waiting import WAIT_LIMIT

from qmf.bus.engine.events import CreditChanged, Delivery, EngineEvent, LinkRequested, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome


class ScriptedPeer:
    """A peer that grants all links and accepts all messages, unless its attributes are changed.

    Attributes:
        url: where it listens.
        silent_links: leave requests for links without an answer.
        silent: leave messages without an answer.
        outcome: of messages, with `error`: condition and description.
        modified: settle messages as modified.
        refusal: condition and description with which links are refused; None to grant them.
        to_send: texts for clients that receive.
        links: that were requested.
        received: number of messages.
        declared: a transaction has begun and not ended.
        on_outcome: called with what becomes of messages that were sent.
    """

    def __init__(self) -> None:
        self.url = ""
        self.silent_links = False
        self.silent = False
        self.outcome = Outcome.ACCEPTED
        self.modified = False
        self.error = ("", "")
        self.refusal: tuple[str, str] | None = None
        self.to_send: list[str] = []
        self.links: list[Link] = []
        self.received = 0
        self.declared = False
        self.on_outcome: Callable[[OutcomeReceived], object] = lambda event: None
        self.peers: list[Peer] = []
        self.loop: asyncio.AbstractEventLoop | None = None

    def __call__(self, peer: Peer, event: EngineEvent) -> None:
        """The script; see `serving`."""
        if peer not in self.peers:
            self.peers.append(peer)
        if isinstance(event, LinkRequested):
            self._on_link(peer, event.link)
        elif isinstance(event, CreditChanged):
            self.send(peer, event.link)
            if not self.silent:
                peer.engine.links.answer_drain(event.link)
        elif isinstance(event, OutcomeReceived):
            self.on_outcome(event)
        elif isinstance(event, Delivery):
            self.received += 1
            self._on_message(peer, event)

    def send(self, peer: Peer, link: Link) -> None:
        """Send what is to be sent, as far as there is credit."""
        while self.to_send and link.is_sender and peer.engine.links.credit(link) > 0:
            peer.engine.deliveries.send(link, message("q", "", self.to_send.pop(0)))

    def _on_link(self, peer: Peer, link: Link) -> None:
        self.links.append(link)
        if self.silent_links:
            return
        if self.refusal is not None:
            peer.engine.links.refuse(link, *self.refusal)
            return
        peer.grant(link)

    def _on_message(self, peer: Peer, event: Delivery) -> None:
        if event.delivery_tag is not None and event.link.target is not None and event.link.target.coordinator:
            self._on_transaction(peer, event, event.delivery_tag)
            return
        if self.silent or event.delivery_tag is None:
            return
        if self.modified:
            peer.engine.decisions.modify(event.link, event.delivery_tag, failed=True, undeliverable=False)
        else:
            peer.engine.decisions.settle(event.link, event.delivery_tag, self.outcome, *self.error)

    def _on_transaction(self, peer: Peer, event: Delivery, delivery_tag: int) -> None:
        if not self.declared:
            self.declared = True
            peer.engine.decisions.declare(event.link, delivery_tag, b"1")
        elif not self.silent:
            self.declared = False
            peer.engine.decisions.settle(event.link, delivery_tag)

    def stop_reading(self) -> None:
        """Read nothing more from the newest connection."""
        self.do(Peer.stop_reading)

    def do(self, action: Callable[[Peer], object]) -> None:
        """Do something with the newest connection, on the peer's thread."""
        assert self.loop is not None
        done = threading.Event()

        def run() -> None:
            action(self.peers[-1])
            self.peers[-1].transport.flush_soon()
            done.set()

        self.loop.call_soon_threadsafe(run)
        assert done.wait(WAIT_LIMIT)


@contextmanager
def scripted_peer(**settings: object) -> Iterator[ScriptedPeer]:
    """A `ScriptedPeer` that listens, with fields of `ConnectionSettings`."""
    script, ready = ScriptedPeer(), threading.Event()
    stop: asyncio.Event | None = None

    async def serve() -> None:
        nonlocal stop
        script.loop, stop = asyncio.get_running_loop(), asyncio.Event()
        async with serving(script, **settings) as peers:
            script.url = peers.url
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    assert ready.wait(WAIT_LIMIT)
    try:
        yield script
    finally:
        assert script.loop is not None
        assert stop is not None
        script.loop.call_soon_threadsafe(stop.set)
        thread.join(WAIT_LIMIT)
