"""Subscriptions to the same objects at the same interval: they share a view, and the encoded objects.

Each subscription begins in a group whose first publication has all objects; those that come while it waits join it.
Then the group joins the group of its key. The view of that group is the older one, since the publications of one key
never overlap: whatever changed since the first publication, the group has yet to publish. What changed shortly before
it is received twice, by a console that knows it already.

A group of several subscriptions has each change sent once to a *shared key*, under which the broker gives it to all
consoles that have bound it (docs/protocol.md). So the work of the agent does not grow with them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import attrs

from qmf.agent.publishing.object_writer import ObjectWriter
from qmf.agent.publishing.row_writer import RowObjectWriter
from qmf.agent.requests.subscription_view import SubscriptionView, Written
from qmf.agent.sending.message_batcher import BatchedSender, MessageBatcher
from qmf.agent.sending.message_sender import MessageSender
from qmf.errors import LinkError, NetworkError
from qmf.protocol import ObjectsIndication, SubscribeShare, parse_reply_to

#: Subscriptions of a group from which on they share a key: each costs its console a link, and the broker a queue.
SHARED_FROM = 4


@attrs.define(eq=False)
class SubscriptionAddress:
    """Where publications go.

    Attributes:
        id: what they name the subscription by.
        reply_to: their address.
        sequence: of the last message.
    """

    id: str
    reply_to: str
    sequence: int = attrs.field(default=0, kw_only=True)


@attrs.define(eq=False)
class SharedKey(SubscriptionAddress):
    """Where the publications of a group go that its subscriptions share; `id` is the routing key.

    Attributes:
        lock: held during a publication, by one group of a key at a time.
        refused: the broker takes nothing under the key, by its rules about routing keys for example.
    """

    lock: asyncio.Lock = attrs.field(factory=asyncio.Lock)
    refused: bool = False


@attrs.define(eq=False)
class GrantedSubscription(SubscriptionAddress):
    """One subscription.

    Attributes:
        lifetime: seconds until it must be refreshed.
        expires: the time of the clock at which it ends unless it is.
        group: those that it shares publications with; it is in their list until it ends.
        can_share: its console receives publications under a shared key, too.
        invited: the console has been asked to bind the key.
        bound: the console has bound it, and waits to be told from when on publications come there.
        shared_from: numbers of the last message of its own and of the first one under the key; None until then.
    """

    lifetime: int
    expires: float
    group: SubscriptionGroup
    can_share: bool = False
    invited: bool = False
    bound: bool = False
    shared_from: tuple[int, int] | None = None


@attrs.define(eq=False)
class SubscriptionGroup:
    """Subscriptions that share a view.

    Attributes:
        key: equal for groups whose subscriptions select the same objects at the same interval.
        view: what was published to all of them.
        writer: of the view; of rows if the consoles read them.
        interval: seconds between publications.
        batcher: divides publications into messages; it knows the size of objects from the last one.
        shared: where the publications go that they share.
        members: the subscriptions.
        started: the first publication was made.
        task: publishes.
    """

    key: str
    view: SubscriptionView
    writer: ObjectWriter | RowObjectWriter
    batcher: MessageBatcher
    interval: float
    shared: SharedKey
    members: list[GrantedSubscription] = attrs.field(factory=list)
    started: bool = False
    task: asyncio.Task[None] | None = None

    def absorb(self, other: SubscriptionGroup) -> None:
        """Take over the members of another group."""
        for member in other.members:
            member.group = self
        self.members += other.members
        other.members = []

    def addresses(self) -> list[SubscriptionAddress]:
        """Where publications go now: to the members that have not bound the shared key, and to that."""
        own: list[SubscriptionAddress] = [member for member in self.members if member.shared_from is None]
        return own if len(own) == len(self.members) else [*own, self.shared]

    async def arrange_sharing(self, sender: MessageSender) -> None:
        """Ask consoles to bind the shared key, and send to those that have from when on publications come there.

        Raises:
            NetworkError: a message could not be sent; the next call goes on.
        """
        inviting = self.started and len(self.members) >= SHARED_FROM and not self.shared.refused
        for member in list(self.members):
            if inviting and member.can_share and not member.invited:
                await self._send_share(sender, member, 0, 0)
                member.invited = True
            elif member.bound:
                numbers = member.shared_from or (member.sequence, self.shared.sequence + 1)
                await self._send_share(sender, member, *numbers)
                member.shared_from, member.bound = numbers, False

    def end_sharing(self) -> None:
        """Publish to each member alone from now on; those that had bound the key notice, and subscribe again."""
        self.shared.refused = True
        for member in self.members:
            member.shared_from = None

    async def _send_share(self, sender: MessageSender, member: GrantedSubscription, last: int, first: int) -> None:
        content = SubscribeShare(
            subscription_id=member.id, shared_key=self.shared.id, last_sequence=last, first_sequence=first
        )
        await sender.send(sender.encode(content, *parse_reply_to(member.reply_to)))


class GroupPublication:
    """One publication to the members that a group has when it begins."""

    def __init__(self, group: SubscriptionGroup, sender: MessageSender) -> None:
        self._group = group
        self._addresses = group.addresses()
        self._sender = sender
        self._content, self._body = group.writer.content(ObjectsIndication, ())
        self._partial = False

    async def run(self) -> None:
        """Publish what changed, and all objects the first time.

        Raises:
            NetworkError: it failed, and nothing counts as published.
            TooManyMatchesError, RequestRefused: as `SubscriptionView.changes`.
        """
        before = [(address, address.sequence) for address in self._addresses]
        batches: BatchedSender[Written] = BatchedSender(self._group.batcher, self._encode, self._send)
        try:
            async with aclosing(self._group.view.changes()) as changes:
                async for item in changes:
                    await batches.add(item)
            if batches.count or not self._group.started:
                await batches.finish()
        except NetworkError:
            for address, sequence in before:
                address.sequence = sequence
            raise
        self._group.started = True
        self._group.view.commit()

    def _encode(self, items: Sequence[Written], partial: bool) -> bytes:
        """The message to the first address: its size is that of the others."""
        self._content, self._body = self._group.writer.content(ObjectsIndication, items)
        self._partial = partial
        return self._message(self._addresses[0])

    async def _send(self, data: bytes, last: bool) -> None:
        """Send the message that was encoded last to all addresses that have not ended."""
        known: set[SubscriptionAddress] = {*self._group.members, self._group.shared}
        present = [item for item in self._addresses if item in known]
        for address in present:
            encoded = data if address is self._addresses[0] else self._message(address)
            address.sequence += 1
            # All messages are sent in order on one link, so the last one confirms all.
            confirm = last and address is present[-1]
            try:
                await self._sender.send(encoded, confirm=confirm)
            except LinkError:
                if address is self._group.shared:
                    self._group.end_sharing()
                raise

    def _message(self, address: SubscriptionAddress) -> bytes:
        to, subject = parse_reply_to(address.reply_to)
        return self._sender.encode(
            self._content,
            to,
            subject,
            partial=self._partial,
            subscription=address.id,
            sequence=address.sequence + 1,
            body=self._body,
        )
