"""All links on which a bus sends over one network connection.

One link to the anonymous relay carries all messages. A broker without the relay gets one link per exchange.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from qmf.bus.base import LinkLost, OutcomeCallback
from qmf.bus.client.dialect import ANONYMOUS_RELAY, dialect_of
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.client.sender_link import SenderLink
from qmf.bus.engine.destination import read_destination
from qmf.bus.engine.values import Terminus
from qmf.errors import NetworkError

#: Links to a broker without anonymous relay; the least recently used one is closed first.
MAX_SENDER_LINKS = 64


class SenderLinks:
    """The links on which a bus sends, created as messages need them."""

    def __init__(self, network: NetworkConnection, report: Callable[[LinkLost], None]) -> None:
        """Make the links of a network connection, which has none yet.

        Args:
            network: the connection.
            report: as of `BusLink`.
        """
        self._network = network
        self._report = report
        self._dialect = dialect_of(network.peer.product)
        #: All messages are sent on one link, to the anonymous relay.
        self._relay = self._dialect.uses_relay and ANONYMOUS_RELAY in network.peer.capabilities
        #: That link, once there is one.
        self._relay_sender: SenderLink | None = None
        #: By address, the most recently used one last; that to the anonymous relay has None.
        self._senders: OrderedDict[str | None, SenderLink] = OrderedDict()

    @property
    def used(self) -> bool:
        """There was a message to be sent, or there will be."""
        return bool(self._senders)

    def prepare(self) -> None:
        """Ask for the link to the anonymous relay, if there will be one, before there is a message for it."""
        if self._relay:
            self._add(None).attach(self._network)

    async def send(self, data: bytes, *, confirm: bool) -> None:
        """See `Bus.send`."""
        await self._sender_for(data).send(data, confirm=confirm)

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:
        """See `Bus.try_send`."""
        return (self._relay_sender or self._sender_for(data)).try_send(data, on_outcome)

    async def finish(self) -> None:
        """Wait until no message waits, or has no outcome yet."""
        for sender in list(self._senders.values()):
            await sender.finish()

    def disconnect(self, error: NetworkError) -> None:
        """The connection has ended: all messages that wait, or have no outcome, fail."""
        for sender in list(self._senders.values()):
            sender.disconnect(error)

    def _sender_for(self, data: bytes) -> SenderLink:
        address = None if self._relay else read_destination(data)[0] or ""
        sender = self._senders.get(address)
        if sender is None:
            if len(self._senders) >= MAX_SENDER_LINKS:
                self._close_idle()
            sender = self._add(address)
        self._senders.move_to_end(address)
        return sender

    def _add(self, address: str | None) -> SenderLink:
        target = Terminus() if address is None else self._dialect.target(address)
        sender = self._senders[address] = SenderLink(
            self._network,
            self._report,
            address=address or "",
            target=target,
            properties=self._dialect.sender_properties,
        )
        self._relay_sender = sender if self._relay else None
        return sender

    def _close_idle(self) -> None:
        """Make room for one more link.

        The addresses are those that requests name for their answers. Links that the broker refused are closed first, so
        that they cannot displace good ones.
        """
        idle = {address: sender for address, sender in self._senders.items() if sender.idle}
        refused = [address for address, sender in idle.items() if sender.unattached]
        for address in refused or list(idle)[:1]:
            self._senders.pop(address).close()
