"""Deliveries of an engine: sent and received; transfers are joined, limits enforced, outcomes of the peer read.

What happens for every message calls proton's C library (`lib`) directly: its
Python objects would take several times as long as everything else. They are used only to read and write errors, which
is rare.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from cproton import ffi, lib

from qmf._compile import fast_constructor
from qmf.bus.engine.decisions import Decisions
from qmf.bus.engine.events import (
    AcceptedBatch,
    ConfirmedBatch,
    Delivery,
    DeliveryBatch,
    EngineEvent,
    EventBatch,
    HeldBatch,
    MessageTooLarge,
    OutcomeReceived,
)
from qmf.bus.engine.link import Link
from qmf.bus.engine.links import Links
from qmf.bus.engine.native import ACCEPTED, ACCEPTED_IN, CONFIRMED, FLOW, HELD, MESSAGES, Batch, Native, number_of
from qmf.bus.engine.outcomes import OUTCOMES, STATES, read_annotations, update, wrap
from qmf.bus.engine.transactions import (
    DECLARED,
    TRANSACTIONAL,
    decode_state,
    encode_state,
    remote_state,
    write_state,
)
from qmf.bus.engine.values import Outcome
from qmf.bus.frames.performatives import PADDED_TAG, TAG

_ACCEPTED = STATES[Outcome.ACCEPTED]
#: One of each is created for every message; they take all fields, in their order.
_delivery, _outcome_received = fast_constructor(Delivery), fast_constructor(OutcomeReceived)
_delivery_batch, _accepted_batch = fast_constructor(DeliveryBatch), fast_constructor(AcceptedBatch)

#: Transfers up to this size are read through one buffer per engine; larger ones get a buffer of their own.
_BUFFER = 16 * 1024
_allocate = ffi.new_allocator(should_clear_after_alloc=False)

#: Bytes that may wait to be written, for a message that is sent however many they are.
_NO_BACKLOG = 1 << 62

#: Messages of the largest size of which a client may have sent parts on all links of a connection together.
_PARTIAL_MESSAGES = 4

_TOO_LARGE = "amqp:link:message-size-exceeded"


class Deliveries:
    """The deliveries on all links of one engine.

    Attributes:
        next_tag: a delivery tag that was not used; all greater ones were not, either.
        message_format: set while events are of a transfer of a message with that format; 0 otherwise.
    """

    def __init__(
        self,
        limit: int,
        events: deque[EngineEvent | EventBatch],
        links: Links,
        decisions: Decisions,
        *,
        server: bool,
        native: Native | None,
    ) -> None:
        """Make the deliveries of an engine, which has none yet.

        Args:
            limit: largest message that is accepted, in bytes. A server rejects a larger one; a client releases it,
                since the broker is to keep it.
            events: of the engine, where those of deliveries are appended.
            links: of the connection; one whose peer exceeds the limit is ended.
            decisions: of the connection; those that wait for the next message are carried out before it is sent.
            server: True on the side that has the transactions: `Delivery` names them, and messages with an outcome
                within one stay unsettled until it ends.
            native: the compiled functions; None to do without.
        """
        self._limit = limit
        #: That of the transfer which is being read.
        self.message_format = 0
        #: Links on which parts of a message have come, and the bytes of these parts, or more.
        self._joining: set[Link] = set()
        self._joining_size = 0
        self._native = native
        self._server = server
        self._events = events
        self._emit: Callable[[EngineEvent], None] = events.append
        self._links = links
        self._decisions = decisions
        self.next_tag = 1
        # The tag of a delivery must be unique among the unsettled ones of its link; proton copies it.
        self._tag = bytearray(PADDED_TAG)
        self._tag_struct = ffi.new("pn_bytes_t *")
        self._tag_start = self._tag_struct.start = ffi.from_buffer(self._tag)
        self._buffer: Any = None

    def send(
        self,
        link: Link,
        data: bytes,
        *,
        settled: bool = False,
        transaction: bytes | None = None,
        delivery_tag: int | None = None,
        message_format: int = 0,
    ) -> int:
        """Send one message. The owner has checked `credit` before.

        Args:
            link: on which we send.
            data: the encoded message.
            settled: settle it at once: there will be no outcome.
            transaction: id of the transaction that the message is part of.
            delivery_tag: on a link that can be resumed; each one is used for one message, on whatever connection.
            message_format: of the message, in 32 bits.

        Returns:
            delivery tag, the same as in `OutcomeReceived`.
        """
        if self._decisions.waiting:
            self._decisions.accept_waiting()
        settled = settled or link.presettled
        if delivery_tag is None:
            delivery_tag = self._take_tag()
            if self._native is not None and not message_format:
                addresses = link.address, link.session_address
                state = None if transaction is None else encode_state(transaction)
                if self._native.send(*addresses, link.sent, [data], 0, settled, _NO_BACKLOG, delivery_tag, state):
                    return delivery_tag
            tag = b"%08x" % (delivery_tag & 0xFFFFFFFF)
        else:
            tag = delivery_tag.to_bytes(TAG)
        if message_format:
            tag += message_format.to_bytes(4)  # `SentFrames` puts it into its field
        self._send_one(link, data, tag, delivery_tag, settled=settled, transaction=transaction)
        return delivery_tag

    def send_all(
        self,
        link: Link,
        messages: list[bytes],
        start: int,
        backlog: int,
        *,
        settled: bool = False,
        transaction: bytes | None = None,
        delivery_tags: list[int] | None = None,
    ) -> Sequence[int]:
        """Send messages, as long as there is credit, and not too much waits to be written.

        Args:
            link: on which we send.
            messages: encoded ones.
            start: the first of them that is sent.
            backlog: bytes given to `send` on the session that may wait.
            settled, transaction: as of `send`, for all of them.
            delivery_tags: as of `send`, of each of `messages`.

        Returns:
            delivery tags of those that were sent.
        """
        if link.detached:
            return range(0)
        if self._decisions.waiting:
            self._decisions.accept_waiting()
        settled = settled or link.presettled
        first = self.next_tag
        if self._native is not None:
            state = None if transaction is None else encode_state(transaction)
            addresses = link.address, link.session_address
            tags = first if delivery_tags is None else delivery_tags
            count: int = self._native.send(*addresses, link.sent, messages, start, settled, backlog, tags, state)
        else:
            impl, session, count = link.impl, link.session_impl, 0
            for place, data in enumerate(messages[start:], start):
                if lib.pn_link_credit(impl) <= 0 or lib.pn_session_outgoing_bytes(session) >= backlog:
                    break
                number = first + count if delivery_tags is None else delivery_tags[place]
                tag = b"%08x" % (number & 0xFFFFFFFF) if delivery_tags is None else number.to_bytes(TAG)
                self._send_one(link, data, tag, number, settled=settled, transaction=transaction)
                count += 1
        if delivery_tags is not None:
            return delivery_tags[start : start + count]
        self.next_tag += count
        return range(first, self.next_tag)

    def _take_tag(self) -> int:
        tag = self.next_tag
        self.next_tag += 1
        return tag

    def _send_one(
        self, link: Link, data: bytes, tag: bytes, delivery_tag: int, *, settled: bool, transaction: bytes | None
    ) -> None:
        self._tag[: len(tag)] = tag
        self._tag_struct.size = len(tag)
        impl = link.impl
        delivery = lib.pn_delivery(impl, self._tag_struct[0])
        if transaction is not None:
            write_state(delivery, TRANSACTIONAL, transaction)
        lib.pn_link_send(impl, data, len(data))
        lib.pn_link_advance(impl)
        if settled:
            lib.pn_delivery_settle(delivery)
        else:
            link.sent[self._handle(delivery)] = delivery_tag

    def _handle(self, delivery: Any) -> Any:
        """What a delivery is in the dictionaries of links: its address for the compiled functions, else itself."""
        return delivery if self._native is None else number_of(delivery)

    def on_batches(self, batches: Sequence[Batch], *, direct: bool = False) -> None:
        """Simple messages, outcomes and credit were read by the compiled functions.

        Args:
            batches: see `native.py`.
            direct: pass messages and acceptances to the owners of links; see `Link.direct`.
        """
        for kind, link, items in batches:
            if kind == FLOW:
                self._links.on_flow(link)
            elif not items:
                continue
            elif kind == MESSAGES:
                owner = link.direct if direct and not self._events else None
                if owner is None:
                    self._emit_messages(link, items)
                else:
                    owner.on_deliveries(_delivery_batch(link, items))
            elif kind == ACCEPTED:
                owner = link.direct if direct and not self._events else None
                if owner is None:
                    self._emit_accepted(link, items, None)
                else:
                    owner.on_accepted(_accepted_batch(link, items, None))
            else:
                self._on_rare_batch(kind, link, items)
        # All of what was read is in the batches now: a link is drained only after its messages.
        for _, link, _ in batches:
            if link.draining:
                self._links.check_drained(link)

    def _on_rare_batch(self, kind: int, link: Link, items: list[Any]) -> None:
        """Outcomes other than those of most messages: in transactions, held ones, forgotten ones; and what confirms."""
        if kind == ACCEPTED_IN:
            self._emit_accepted(link, items, decode_state(link.accepting).transaction)
        elif kind == HELD:
            link.transactional.update(items)
            self._emit_held(link, [tag for tag, _ in items])
        elif kind == CONFIRMED:
            self._emit_confirmed(link, items)
        else:
            for handle in items:
                _forget_transactional(link, handle)

    def _emit_messages(self, link: Link, deliveries: list[tuple[int | None, bytes]]) -> None:
        last = self._events[-1] if self._events else None
        if type(last) is DeliveryBatch and last.link is link:
            last.deliveries.extend(deliveries)
        else:
            self._events.append(DeliveryBatch(link, deliveries))

    def _emit_accepted(self, link: Link, delivery_tags: list[int], transaction: bytes | None) -> None:
        last = self._events[-1] if self._events else None
        if type(last) is AcceptedBatch and last.link is link and last.transaction == transaction:
            last.delivery_tags.extend(delivery_tags)
        else:
            self._events.append(AcceptedBatch(link, delivery_tags, transaction))

    def _emit_held(self, link: Link, delivery_tags: list[int]) -> None:
        last = self._events[-1] if self._events else None
        if type(last) is HeldBatch and last.link is link:
            last.delivery_tags.extend(delivery_tags)
        else:
            self._events.append(HeldBatch(link, delivery_tags))

    def _emit_confirmed(self, link: Link, delivery_tags: list[int]) -> None:
        last = self._events[-1] if self._events else None
        if type(last) is ConfirmedBatch and last.link is link:
            last.delivery_tags.extend(delivery_tags)
        else:
            self._events.append(ConfirmedBatch(link, delivery_tags))

    def on_changed(self, link: Link | None, delivery: Any) -> None:
        """Something happened to a delivery; `link` is None when the engine has forgotten the link."""
        if link is None or link.detached:
            # Nothing waits for it any more. A message settled without an outcome would count as accepted.
            if lib.pn_link_is_receiver(lib.pn_delivery_link(delivery)) and not lib.pn_delivery_local_state(delivery):
                lib.pn_delivery_update(delivery, STATES[Outcome.RELEASED])
            lib.pn_delivery_settle(delivery)
        elif link.is_sender:
            self._on_outcome(link, delivery)
        else:
            self._on_transfer(link, delivery)

    def _on_outcome(self, link: Link, delivery: Any) -> None:
        if not lib.pn_delivery_updated(delivery):
            return
        state = lib.pn_delivery_remote_state(delivery)
        outcome = OUTCOMES.get(state)
        if outcome is None and state not in (DECLARED, TRANSACTIONAL) and not lib.pn_delivery_settled(delivery):
            return
        handle = self._handle(delivery)
        delivery_tag = link.sent.pop(handle, None)
        if delivery_tag is None:
            if lib.pn_delivery_settled(delivery):
                _forget_transactional(link, handle)
                lib.pn_delivery_settle(delivery)
            return
        if outcome is Outcome.ACCEPTED:
            if link.keeps_unsettled and not lib.pn_delivery_settled(delivery):
                link.transactional[delivery_tag] = handle
                self._emit_held(link, [delivery_tag])
                return
            event = _outcome_received(link, delivery_tag, outcome, "", "", False, False, None, True, b"")
        else:
            event = self._read_outcome(link, delivery, delivery_tag, state)
        if event.final:
            lib.pn_delivery_settle(delivery)
        else:
            link.transactional[delivery_tag] = handle
        self._emit(event)

    def _read_outcome(self, link: Link, delivery: Any, delivery_tag: int, state: int) -> OutcomeReceived:
        """The event for all states but acceptance."""
        if state in (DECLARED, TRANSACTIONAL):
            encoded = remote_state(delivery)
            found = decode_state(encoded)
            inner = Outcome.ACCEPTED if found.outcome is None else OUTCOMES.get(found.outcome, Outcome.ACCEPTED)
            final = not self._server or bool(lib.pn_delivery_settled(delivery))
            if state == TRANSACTIONAL and inner is Outcome.ACCEPTED and not self._server:
                link.accepting = encoded
            error = (found.condition, found.description)
            return _outcome_received(link, delivery_tag, inner, *error, False, False, found.transaction, final, b"")
        outcome = OUTCOMES.get(state)
        remote = wrap(delivery).remote
        if outcome is Outcome.REJECTED and (condition := remote.condition):
            return OutcomeReceived(link, delivery_tag, outcome, condition.name, condition.description or "")
        if outcome is Outcome.MODIFIED:
            failed, undeliverable = bool(remote.failed), bool(remote.undeliverable)
            annotations = read_annotations(delivery)
            return OutcomeReceived(
                link, delivery_tag, outcome, failed=failed, undeliverable=undeliverable, annotations=annotations
            )
        # Settled without an outcome: the peer has the message.
        return OutcomeReceived(link, delivery_tag, outcome or Outcome.ACCEPTED)

    def _on_transfer(self, link: Link, delivery: Any) -> None:
        impl = link.impl
        if lib.pn_delivery_aborted(delivery):
            link.chunks.clear()
            link.mark_row()
            link.chunks_size = link.message_format = 0
            lib.pn_delivery_settle(delivery)
            lib.pn_link_flow(impl, 1)
            return
        if self.message_format:
            link.message_format = self.message_format
        if not lib.pn_delivery_readable(delivery) or lib.pn_link_current(impl) != delivery:
            self._on_settled(link, delivery)
            return
        data = b""
        if size := lib.pn_delivery_pending(delivery):
            data = self._read(impl, size)
        if link.chunks or link.chunks_size + len(data) > self._limit or lib.pn_delivery_partial(delivery):
            whole = self._join(link, delivery, data)
            if whole is None:
                return
            data = whole
        lib.pn_link_advance(impl)
        self._emit_received(link, delivery, data)
        if link.draining:
            self._links.check_drained(link)

    def _emit_received(self, link: Link, delivery: Any, data: bytes) -> None:
        """A message has come whole."""
        message_format, link.message_format = link.message_format, 0
        transaction = None
        if self._server and lib.pn_delivery_remote_state(delivery) == TRANSACTIONAL:
            transaction = decode_state(remote_state(delivery)).transaction
        if lib.pn_delivery_settled(delivery):
            lib.pn_delivery_settle(delivery)
            self._emit(_delivery(link, None, data, transaction, message_format))
            return
        delivery_tag = self._take_tag() if link.resumption is None else _read_tag(delivery)
        link.received[delivery_tag] = self._handle(delivery)
        if link.joined and transaction is None and not message_format:
            self._emit_messages(link, [(delivery_tag, data)])
        else:
            self._emit(_delivery(link, delivery_tag, data, transaction, message_format))

    def _on_settled(self, link: Link, delivery: Any) -> None:
        """The peer may have settled a delivery whose outcome it was to confirm."""
        if not link.confirming or not lib.pn_delivery_settled(delivery):
            return
        delivery_tag = link.confirming.pop(self._handle(delivery), None)
        if delivery_tag is not None:
            link.received.pop(delivery_tag, None)
            lib.pn_delivery_settle(delivery)
            self._emit_confirmed(link, [delivery_tag])

    def _read(self, impl: Any, size: int) -> bytes:
        buffer = self._buffer if size <= _BUFFER else None
        if buffer is None:
            buffer = _allocate("char[]", max(size, _BUFFER))
            if size <= _BUFFER:
                self._buffer = buffer
        count: int = lib.pn_link_recv(impl, buffer, size)
        data: bytes = ffi.buffer(buffer, max(0, count))[:]
        return data

    def _excess(self, link: Link, size: int) -> tuple[str, str] | None:
        """The error of a message that a server receives, now that it has `size` bytes more; None if it may go on."""
        if link.chunks_size > self._limit:
            return _TOO_LARGE, f"messages may have {self._limit} bytes, this one has more"
        self._joining.add(link)
        self._joining_size += size
        most = _PARTIAL_MESSAGES * self._limit
        if self._joining_size > most:
            # Links that have ended meanwhile do not count.
            self._joining = {each for each in self._joining if each.chunks_size}
            self._joining_size = sum(each.chunks_size for each in self._joining)
            if self._joining_size > most:
                return "amqp:resource-limit-exceeded", f"unfinished messages may have {most} bytes together"
        return None

    def _join(self, link: Link, delivery: Any, data: bytes) -> bytes | None:
        """Add a transfer to the message that is being received; returns the message when it is complete."""
        link.chunks.append(data)
        link.mark_row()
        link.chunks_size += len(data)
        if not self._server:
            if link.chunks_size > self._limit:
                self._pass_over(link, delivery)
                return None
        elif (error := self._excess(link, len(data))) is not None:
            update(delivery, Outcome.REJECTED, *error).settle()
            self._links.detach(link, *error)
            return None
        if lib.pn_delivery_partial(delivery):
            return None
        if self._server:
            self._joining.discard(link)
            self._joining_size -= link.chunks_size
        whole = b"".join(link.chunks)
        link.chunks.clear()
        link.mark_row()
        link.chunks_size = 0
        return whole

    def _pass_over(self, link: Link, delivery: Any) -> None:
        """Count the bytes of a message that is too large, and keep none; at its end, release it and end the link."""
        link.chunks[:] = [b""]
        if lib.pn_delivery_partial(delivery):
            return
        size, settled = link.chunks_size, bool(lib.pn_delivery_settled(delivery))
        update(delivery, Outcome.RELEASED, "", "").settle()
        self._emit(MessageTooLarge(link, size, settled))
        self._links.detach(link, _TOO_LARGE, f"messages may have {self._limit} bytes, this one has {size}")


def _forget_transactional(link: Link, handle: Any) -> None:
    """A message with an outcome that waits for `settle_sent` was settled by the peer."""
    link.transactional = {tag: other for tag, other in link.transactional.items() if other != handle}


def _read_tag(delivery: Any) -> int:
    """The delivery tag that the peer chose, on a link that can be resumed."""
    tag = lib.pn_delivery_tag(delivery)
    if tag.size != TAG:
        raise ValueError(f"a delivery tag of {tag.size} bytes on a link that can be resumed, instead of {TAG}")
    return int.from_bytes(ffi.buffer(tag.start, tag.size)[:])
