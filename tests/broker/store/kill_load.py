"""Load on a broker that is killed again and again, and a ledger of what the broker has promised meanwhile.

Workers send durable messages one by one, acknowledge messages, and move messages from one queue to another in
transactions. A worker ends at the first error: the broker was killed. What a worker had asked for and not heard of may
have happened or not; what it was told has to be true afterwards.
"""

from __future__ import annotations

import asyncio
import itertools
from collections import Counter
from collections.abc import Coroutine
from typing import Any

import attrs

from qmf.messaging import Empty, Message, MessagingError
from qmf.messaging.aio import Connection, Session

#: The queue that is sent to, and the one that transactions move messages to.
WORK, MOVED = "work", "moved"
_DECLARED = "; {create: always, node: {type: queue, durable: True}}"
#: Messages that a transaction moves.
GROUP = 3
#: Messages that wait at most before senders pause.
BACKLOG = 400
#: Seconds in which a fetch finds nothing.
_NOTHING = 0.2


@attrs.define
class Ledger:
    """What was asked for and what was promised, over all lives of the broker.

    Attributes:
        accepted: messages that the broker has accepted.
        offered: messages that were sent.
        acknowledged: messages whose acknowledgement the broker has confirmed.
        acknowledging: messages that were acknowledged; the answer may be missing.
        moves: groups of messages that a transaction moved or may have moved.
        committed: those whose commit was confirmed, as numbers in `moves`.
        faults: broken promises that were seen on the way.
    """

    accepted: set[str] = attrs.field(factory=set)
    offered: set[str] = attrs.field(factory=set)
    acknowledged: set[str] = attrs.field(factory=set)
    acknowledging: set[str] = attrs.field(factory=set)
    moves: list[tuple[str, ...]] = attrs.field(factory=list)
    committed: set[int] = attrs.field(factory=set)
    faults: list[str] = attrs.field(factory=list)
    _numbers: itertools.count[int] = attrs.field(factory=itertools.count)

    def next_name(self) -> str:
        """A name for a message."""
        return f"m{next(self._numbers)}"

    def received(self, name: str) -> None:
        """A message came out of the first queue."""
        if name in self.acknowledged:
            self.faults.append(f"{name} was acknowledged and came again")
        if any(number in self.committed and name in group for number, group in enumerate(self.moves)):
            self.faults.append(f"{name} was moved and came again from {WORK}")

    def compare(self, work: Counter[str], moved: Counter[str]) -> list[str]:
        """Faults, given what is left in both queues."""
        faults = list(self.faults)
        faults += [f"{name} is there {count} times" for name, count in (work + moved).items() if count > 1]
        faults += [f"{name} was never sent" for name in {*work, *moved} - self.offered]
        left = {*work, *moved}
        faults += [f"{name} was accepted and is lost" for name in self.accepted - left - self.acknowledging]
        faults += [f"{name} was acknowledged and is there again" for name in self.acknowledged & left]
        for number, group in enumerate(self.moves):
            # A group that was not moved may have been moved in another one, or acknowledged, since.
            there = [name in moved for name in group]
            if number in self.committed and not all(there):
                faults.append(f"{group} was moved, and is not all there")
        whole: Counter[str] = Counter()
        for group in self.moves:
            if all(name in moved for name in group):
                whole.update(group)
        faults += [f"{name} was moved without its group" for name in moved if name not in whole]
        return faults


async def load(url: str, ledger: Ledger, *, senders: int = 8, receivers: int = 2, movers: int = 2) -> None:
    """Work on a broker until it is gone."""
    work: list[Coroutine[Any, Any, None]] = [_send(url, ledger) for _ in range(senders)]
    work += [_acknowledge(url, ledger) for _ in range(receivers)]
    work += [_move(url, ledger) for _ in range(movers)]
    results = await asyncio.gather(*work, return_exceptions=True)
    for result in results:
        if result is not None and not isinstance(result, MessagingError | asyncio.CancelledError):
            raise result


async def left(url: str, queue: str) -> Counter[str]:
    """What is in a queue, which is empty then."""
    found: Counter[str] = Counter()
    connection = await Connection.establish(url, timeout=60)
    session = await connection.session()
    receiver = await session.receiver(queue + _DECLARED, capacity=500)
    while True:
        try:
            found[str((await receiver.fetch(timeout=1)).content)] += 1
        except Empty:
            break
        if found.total() % 500 == 0:  # the broker delivers some thousand messages only that are not settled
            await session.acknowledge()
    await session.acknowledge()
    await connection.close()
    return found


async def _session(url: str, *, transactional: bool = False) -> Session:
    connection = await Connection.establish(url, timeout=60)
    return await connection.session(transactional=transactional)


async def _send(url: str, ledger: Ledger) -> None:
    session = await _session(url)
    sender = await session.sender(WORK + _DECLARED, capacity=20)
    while True:
        batch = [ledger.next_name() for _ in range(10)]
        ledger.offered.update(batch)
        for name in batch[:-1]:
            await sender.send(Message(name, durable=True), sync=False)
        await sender.send(Message(batch[-1], durable=True), sync=True)
        ledger.accepted.update(batch)
        while len(ledger.accepted) - len(ledger.acknowledging) - GROUP * len(ledger.committed) > BACKLOG:
            await asyncio.sleep(0.01)
            session.check_error()


async def _acknowledge(url: str, ledger: Ledger) -> None:
    session = await _session(url)
    receiver = await session.receiver(WORK + _DECLARED, capacity=20)
    while True:
        try:
            message = await receiver.fetch(timeout=_NOTHING)
        except Empty:
            continue
        name = str(message.content)
        ledger.received(name)
        ledger.acknowledging.add(name)
        await session.acknowledge(message, sync=True)
        ledger.acknowledged.add(name)


async def _move(url: str, ledger: Ledger) -> None:
    session = await _session(url, transactional=True)
    receiver = await session.receiver(WORK + _DECLARED, capacity=GROUP)
    sender = await session.sender(MOVED + _DECLARED, capacity=20)
    while True:
        group: list[str] = []
        while len(group) < GROUP:
            try:
                message = await receiver.fetch(timeout=_NOTHING)
            except Empty:
                session.check_error()
                continue
            name = str(message.content)
            ledger.received(name)
            group.append(name)
            await sender.send(Message(name, durable=True), sync=False)
        await session.acknowledge()
        number = len(ledger.moves)
        ledger.moves.append(tuple(group))
        await session.commit()
        ledger.committed.add(number)
