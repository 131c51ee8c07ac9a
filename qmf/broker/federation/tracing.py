"""What a link does about the traces of its messages: what goes in a circle is not forwarded, the rest gets an id."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from qmf.broker.federation.definitions import LinkDefinition
from qmf.broker.nodes.message import read_message
from qmf.broker.nodes.sections import place_for_annotations
from qmf.broker.nodes.traces import read_trace
from qmf.broker.operations.forwarding import LinkDirection
from qmf.errors import DecodeError

log = logging.getLogger("qmf.broker.federation")

#: Seconds between two lines of the log about one link.
PAUSE = 60.0

#: What stands between ids, which none may contain, and what stands for it.
_SEPARATORS = str.maketrans({",": "%2C", " ": "%20"})


def broker_id(container: str) -> str:
    """The id of a broker in traces: its container id."""
    return container.translate(_SEPARATORS)


class LinkTrace:
    """Decides by their traces which messages of a link are forwarded.

    Attributes:
        added: id that is added to the trace of each: that of the broker which it leaves; empty if that has none.
    """

    def __init__(self, own: str, peer: str, definition: LinkDefinition) -> None:
        """Make what decides for a link, on one connection.

        Args:
            own: id of this broker.
            peer: that of the other one; empty if it has none.
        """
        outgoing = definition.direction is LinkDirection.OUTGOING
        self.added = definition.tag or (own if outgoing else peer)
        self._max_hops = definition.max_hops
        self._reasons = {peer: "it has left the other broker by a link before", own: "it has left this broker before"}
        if definition.excludes:
            self._reasons = {id: f"it has left {id} before, which is excluded" for id in definition.excludes}

    def refusal(self, data: bytes, message_format: int = 0) -> str:
        """Why a message is not forwarded, for people; empty if it is.

        Args:
            data: the encoded message.
            message_format: of its transfer. A message that the broker cannot read has no trace.
        """
        if not message_format and place_for_annotations(data) >= 0:
            return ""
        try:
            if message_format and read_message(data, 0.0, message_format).opaque:
                return ""
            ids = read_trace(data)
        except DecodeError as error:
            return f"its trace cannot be read: {error}"
        for id in ids:
            if (reason := self._reasons.get(id)) is not None:
                return reason
        return f"it has left {len(ids)} brokers by links" if len(ids) >= self._max_hops else ""


class UnforwardedMessages:
    """The messages that a link does not forward: counted, and logged once in a while.

    Attributes:
        count: since the link was created, or the broker started.
    """

    def __init__(self, link: str, clock: Callable[[], float] = time.monotonic) -> None:
        """Make the count of a link, which has forwarded all so far.

        Args:
            link: which, for people.
            clock: any, in seconds.
        """
        self.count = 0
        self._link = link
        self._clock = clock
        self._next = float("-inf")

    def add(self, reason: str) -> None:
        """A message is not forwarded, for a reason."""
        self.count += 1
        if (now := self._clock()) >= self._next:
            self._next = now + PAUSE
            log.info("%s has not forwarded messages, %d so far; the last one: %s", self._link, self.count, reason)
