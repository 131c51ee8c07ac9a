"""Two engines, a client and a server, joined without I/O."""

from __future__ import annotations

from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import CreditChanged, EngineEvent, LinkAttached, LinkRequested
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import ConnectionSettings, Terminus


class Pair:
    """A client and a server; `pump` carries bytes between them until there are none."""

    def __init__(
        self,
        *,
        piece: int = 1 << 20,
        client: ConnectionSettings | None = None,
        server: ConnectionSettings | None = None,
    ) -> None:
        self.client = Engine(client or ConnectionSettings("client", hostname="host"))
        self.server = Engine(server or ConnectionSettings("server", server=True, capabilities=("ANONYMOUS-RELAY", "x")))
        self.piece = piece
        self.at_client: list[EngineEvent] = []
        self.at_server: list[EngineEvent] = []
        self.credit: list[EngineEvent] = []
        self.to_server: list[bytes] = []

    def pump(self) -> None:
        moved = True
        while moved:
            moved = False
            for source, target in ((self.client, self.server), (self.server, self.client)):
                while data := source.output():
                    moved = True
                    if target is self.server:
                        self.to_server.append(data)
                    for start in range(0, len(data), self.piece):
                        target.feed(data[start : start + self.piece])
            for engine, events in ((self.client, self.at_client), (self.server, self.at_server)):
                while (event := engine.next_event()) is not None:
                    (self.credit if isinstance(event, CreditChanged) else events).append(event)
                    moved = True

    def link(self, *, sending: bool, credit: int = 10, node: Terminus | None = None) -> tuple[Link, Link]:
        """A link that the client asked for and the server granted; (client's, server's)."""
        node = node or Terminus("there")
        mine = self.client.links.attach("name", is_sender=sending, terminus=node, credit=0 if sending else credit)
        self.pump()
        (request,) = [event for event in self.at_server if isinstance(event, LinkRequested)]
        self.server.links.accept(request.link, source=request.link.source, target=request.link.target)
        if sending:
            self.server.links.add_credit(request.link, credit)
        self.pump()
        assert LinkAttached(mine) in self.at_client
        self.at_client.clear()
        self.at_server.clear()
        return mine, request.link
