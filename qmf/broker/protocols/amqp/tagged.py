"""Outgoing links whose messages have delivery tags of their own, so that a receiver knows one that comes again.

A tag is used for one message only. On a lasting link it is the id of a message in the store, which is never used again:
so the message has the same tag after a restart, and what the receiver accepted before can be removed then. Such a
message is sent when it is on the disk: otherwise it could come here once more, after a restart, with another id.
"""

from __future__ import annotations

import itertools
import secrets
from collections import deque
from collections.abc import Collection, Sequence

from qmf.broker.nodes.entries import ACQUIRED, Entry
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.selectors import Selector
from qmf.broker.protocols.amqp.outgoing import OutgoingLink
from qmf.bus.engine.link import Link
from qmf.bus.transport import AmqpTransport

#: Messages that a client may hold unsettled on a link that can be resumed.
MAX_UNSETTLED = 1_000
#: Bytes of an attach for each unsettled delivery, at most: all have to fit in one frame.
_BYTES_PER_DELIVERY = 64

#: On a lasting link, tags of messages that are not in the store have this bit, and begin anywhere behind it.
_TRANSIENT = 1 << 62


class TaggedOutgoingLink(OutgoingLink):
    """An `OutgoingLink` that can be resumed. It stays a consumer of its queue while it is suspended, without credit.

    Attributes:
        resumable: it can; otherwise its tags are those of any link.
    """

    def __init__(
        self,
        transport: AmqpTransport,
        link: Link,
        queue: Queue,
        selector: Selector | None,
        *,
        lasting: bool,
        resumable: bool = True,
    ) -> None:
        """Make the link.

        Args:
            lasting: tags are the same after a restart.
        """
        super().__init__(transport, link, queue, selector)
        self.resumable = resumable
        self._lasting = lasting
        self._window = window_of(transport, MAX_UNSETTLED)
        #: Tags of messages that are not in the store.
        self._tags = itertools.count(_TRANSIENT | secrets.randbits(60) if lasting else 1)
        #: Deliveries that the receiver knows of, which have to be established on another link before any other.
        self._resuming: deque[int] = deque()
        #: Entries that wait until they are on the disk, with what is to be sent.
        self._held: deque[tuple[Entry, bytes]] = deque()
        self._waiting = False

    def resume(self, known: Collection[int], accepted: Collection[int] = ()) -> Collection[int]:
        """The receiver knows of some deliveries: these are established again, the others return to the queue.

        Args:
            known: tags of those that are still to be settled.
            accepted: tags of others that it has accepted. Those of messages that are not here any more are established
                as well, so that the receiver can forget them.

        Returns:
            those of `known` that are still here.
        """
        unsettled, self._unsettled = self._unsettled, {}
        wanted = {*known, *accepted}
        if self._lasting and (missing := wanted - unsettled.keys()):
            unsettled.update(self._delivery.claim(missing, self))
        kept = {tag: unsettled.pop(tag) for tag in sorted(wanted) if tag in unsettled}
        self._unsettled = kept.copy()
        self._resuming = deque(sorted({*kept, *accepted}))  # before anything else is sent
        self._delivery.release([*unsettled.values(), *self._take_held()])  # together, so that they stay in order
        return [tag for tag in known if tag in kept]

    def reattach(self, transport: AmqpTransport, link: Link) -> None:
        """Send on another link from now on."""
        self._transport = transport
        link.keeps_unsettled = self.link.keeps_unsettled
        self.link = link

    def ready(self) -> bool:
        if not self.resumable:
            return super().ready()
        held = len(self._held)
        return (
            not self._resuming and len(self._unsettled) + held < self._window and self._transport.room(self.link) > held
        )

    def dispatch(self) -> None:
        engine = self._transport.engine
        while self._resuming and engine.links.credit(self.link) > 0:
            # Without data, which the receiver has.
            engine.deliveries.send(self.link, b"", delivery_tag=self._resuming.popleft())
            self._transport.flush_soon()
        self._send_held()
        super().dispatch()

    def room(self) -> int:
        if not self.resumable:
            return super().room()
        held = len(self._held)
        most = self._window - len(self._unsettled) - held
        return max(min(most, self._transport.room(self.link) - held), 0) if most > 0 and not self._resuming else 0

    def _send_all(self, entries: Sequence[Entry], messages: list[bytes]) -> int:
        """See `OutgoingLink`. Those that wait for the disk count as sent."""
        if not self.resumable:
            return super()._send_all(entries, messages)
        if self._held or not self._may_send(entries):
            self._held.extend(zip(entries, messages, strict=True))
            self._wait_for_disk()
            return len(entries)
        return self._send_all_tagged(entries, messages)

    def _send(self, entry: Entry, data: bytes) -> None:
        if not self.resumable:
            super()._send(entry, data)
            return
        if self._held or not self._may_send([entry]):
            self._held.append((entry, data))
            self._wait_for_disk()
        else:
            self._send_tagged(entry, data)

    def on_detached(self) -> None:
        super().on_detached()
        self._delivery.release(self._take_held())

    def _tag(self, entry: Entry) -> int:
        return entry.record if self._lasting and entry.record is not None else next(self._tags)

    def _send_all_tagged(self, entries: Sequence[Entry], messages: list[bytes]) -> int:
        tags = list(map(self._tag, entries))
        count = len(self._transport.send_all(self.link, messages, delivery_tags=tags))
        self.transfers += count
        self._unsettled.update(zip(tags[:count], entries, strict=False))
        return count

    def _send_tagged(self, entry: Entry, data: bytes) -> None:
        tag = self._tag(entry)
        self._unsettled[tag] = entry
        self._transport.engine.deliveries.send(
            self.link, data, delivery_tag=tag, message_format=entry.message.message_format
        )
        self._transport.flush_soon()
        self.transfers += 1

    def _may_send(self, entries: Sequence[Entry]) -> bool:
        """Entries are on the disk, or need not be."""
        recorder = self.queue.recorder
        return (
            not self._lasting or recorder is None or recorder.is_stored(max([entry.record or 0 for entry in entries]))
        )

    def _wait_for_disk(self) -> None:
        if (recorder := self.queue.recorder) is not None and not self._waiting:
            self._waiting = True
            recorder.when_stored(self._on_stored)

    def _on_stored(self) -> None:
        self._waiting = False
        self._send_held()

    def _send_held(self) -> None:
        """Send the entries that are on the disk by now, unless they are gone, or nothing can be sent."""
        while ready := self._take_ready():
            if ready[0][0].message.message_format:
                self._send_tagged(*ready[0])
                continue
            sent = self._send_all_tagged([entry for entry, _ in ready], [data for _, data in ready])
            if sent < len(ready):
                self._held.extendleft(reversed(ready[sent:]))
                return

    def _take_ready(self) -> list[tuple[Entry, bytes]]:
        """The first of the entries that wait, as many as can be sent together; one that has a format is on its own."""
        most = 0 if self._resuming else self._transport.room(self.link)  # until there is credit, or the next connection
        ready: list[tuple[Entry, bytes]] = []
        while self._held:
            entry, _ = self._held[0]
            if entry.state is not ACQUIRED or entry.acquirer is not self:  # it could not be stored
                self._held.popleft()
                continue
            if not self._may_send([entry]):
                self._wait_for_disk()
                break
            if len(ready) >= most or (ready and entry.message.message_format):
                break
            ready.append(self._held.popleft())
            if entry.message.message_format:
                break
        return ready

    def _take_held(self) -> list[Entry]:
        held, self._held = self._held, deque()
        return [entry for entry, _ in held if entry.acquirer is self]


def window_of(transport: AmqpTransport, most: int) -> int:
    """Deliveries that may be unsettled on a link that can be resumed."""
    return max(2, min(most, transport.engine.max_frame // _BYTES_PER_DELIVERY))
