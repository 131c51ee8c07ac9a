"""What the links of a bus have in common: they are attached again when the broker detaches them.

Brokers detach links for reasons that may pass: they answer invalid messages that way (QMF2.md 0, point 10), and delete
queues. A link is attached again at once for `MAX_REATTACHMENTS` times in a row, then only after pauses, so that a
broker that does not want it is not flooded.
"""

from __future__ import annotations

import abc
from collections.abc import Callable

from qmf.bus.base import LinkLost
from qmf.bus.client.persistent_link import PersistentLink
from qmf.errors import LinkError, NetworkError

#: A link that the broker detaches is attached again at once so many times in a row; then only after pauses.
MAX_REATTACHMENTS = 5


class BusLink(PersistentLink):
    """A link of a bus.

    Attributes:
        address: of its node; empty for the link to the anonymous relay.
    """

    def __init__(self, address: str, report: Callable[[LinkLost], None], pause: float) -> None:
        """Make a link that is not attached.

        Args:
            address: of the node, for errors; empty for the anonymous relay.
            report: called with what watchers are to be notified of.
            pause: seconds between attempts to attach a link that the broker has detached too often.
        """
        super().__init__()
        self.address = address
        self._report = report
        self._pause = pause
        #: How often the link was attached again at once since it has last proved useful.
        self._reattached = 0
        #: Why the broker has detached the link, until it is attached again.
        self._lost: LinkError | None = None

    def lose(self) -> None:
        """See `PersistentLink`."""
        super().lose()
        self._lost = None

    def on_attached(self) -> None:
        """See `LinkOwner`."""
        super().on_attached()
        if self._lost is not None:
            self._report_lost(self._lost, reopened=True)
            self._lost = None

    @abc.abstractmethod
    def disconnect(self, error: NetworkError) -> None:
        """`lose`; whoever waits gets the error."""

    # What subclasses do

    @abc.abstractmethod
    def _on_refused(self, error: LinkError) -> float | None:
        """The broker has refused the link; returns the same as `_on_ended`."""

    @abc.abstractmethod
    def _on_detached(self, error: LinkError) -> None:
        """The broker has detached the link. It will be attached again, at once or after a pause."""

    # For subclasses

    def _on_ended(self, condition: str, description: str) -> float | None:
        error = LinkError(self.address, condition or "amqp:link:detach-forced", description)
        if not self.attached:
            return self._on_refused(error)
        self._lost = error
        self._on_detached(error)
        if self._reattached < MAX_REATTACHMENTS:
            self._reattached += 1
            return 0
        self._report_lost(error, reopened=False)
        return self._pause

    def _report_lost(self, error: LinkError, *, reopened: bool) -> None:
        self._report(LinkLost(error.address, error.condition, error.description, reopened=reopened))
