"""Subscriptions to the same objects at the same interval: they share a view, and the encoded objects.

Each subscription begins as a group of its own, whose first publication has all objects. Then it joins the group of its
key. The view of that group is the older one, since the publications of one key never overlap: whatever changed since
the first publication, the group has yet to publish. What changed shortly before it is received twice, by a console that
knows it already.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import aclosing

import attrs

from qmf.agent.metrics import AgentMetrics
from qmf.agent.publishing.object_writer import Item, ObjectWriter
from qmf.agent.requests.subscription_view import SubscriptionView
from qmf.agent.sending.message_batcher import BatchedSender, MessageBatcher
from qmf.agent.sending.message_sender import MessageSender
from qmf.errors import NetworkError
from qmf.protocol import ObjectsIndication, parse_reply_to


@attrs.define(eq=False)
class GrantedSubscription:
    """One subscription.

    Attributes:
        id: of the subscription.
        reply_to: where its publications go.
        lifetime: seconds until it must be refreshed.
        expires: the time of the clock at which it ends unless it is.
        group: those that it shares publications with; it is in their list until it ends.
        sequence: of its last message.
    """

    id: str
    reply_to: str
    lifetime: int
    expires: float
    group: SubscriptionGroup
    sequence: int = 0


@attrs.define(eq=False)
class SubscriptionGroup:
    """Subscriptions that share a view.

    Attributes:
        key: equal for groups whose subscriptions select the same objects at the same interval.
        view: what was published to all of them.
        interval: seconds between publications.
        lock: held during a publication, by one group of a key at a time.
        members: the subscriptions.
        started: the first publication was made.
        task: publishes.
    """

    key: str
    view: SubscriptionView
    interval: float
    lock: asyncio.Lock
    members: list[GrantedSubscription] = attrs.field(factory=list)
    started: bool = False
    task: asyncio.Task[None] | None = None

    def absorb(self, other: SubscriptionGroup) -> None:
        """Take over the members of another group."""
        for member in other.members:
            member.group = self
        self.members += other.members
        other.members = []


class GroupPublication:
    """One publication to the members that a group has when it begins."""

    def __init__(
        self, group: SubscriptionGroup, writer: ObjectWriter, sender: MessageSender, metrics: AgentMetrics
    ) -> None:
        self._group = group
        self._members = list(group.members)
        self._writer = writer
        self._sender = sender
        self._metrics = metrics
        self._content, self._body = writer.content(ObjectsIndication, ())
        self._partial = False

    async def run(self) -> None:
        """Publish what changed, and all objects the first time.

        Raises:
            NetworkError: it failed, and nothing counts as published.
            TooManyMatchesError, RequestRefused: as `SubscriptionView.changes`.
        """
        before = [(member, member.sequence) for member in self._members]
        batches: BatchedSender[Item] = BatchedSender(MessageBatcher(self._metrics), self._encode, self._send)
        try:
            async with aclosing(self._group.view.changes()) as changes:
                async for item in changes:
                    await batches.add(item)
            if batches.count or not self._group.started:
                await batches.finish()
        except NetworkError:
            for member, sequence in before:
                member.sequence = sequence
            raise
        self._group.started = True
        self._group.view.commit()

    def _encode(self, items: Sequence[Item], partial: bool) -> bytes:
        """The message to the first member: its size is that of the others."""
        self._content, self._body = self._writer.content(ObjectsIndication, items)
        self._partial = partial
        return self._message(self._members[0])

    async def _send(self, data: bytes, last: bool) -> None:
        """Send the message that was encoded last to all members that have not ended."""
        present = [member for member in self._members if member in self._group.members]
        for member in present:
            encoded = data if member is self._members[0] else self._message(member)
            member.sequence += 1
            # All messages are sent in order on one link, so the last one confirms all.
            await self._sender.send(encoded, confirm=last and member is present[-1])

    def _message(self, member: GrantedSubscription) -> bytes:
        to, subject = parse_reply_to(member.reply_to)
        return self._sender.encode(
            self._content,
            to,
            subject,
            partial=self._partial,
            subscription=member.id,
            sequence=member.sequence + 1,
            body=self._body,
        )
