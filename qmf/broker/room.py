"""Waiting until a queue has room, for messages that must not be dropped: the parts of an answer."""

from __future__ import annotations

import asyncio

from qmf.broker.nodes.entries import DepthObserver, Entry
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import OverflowPolicy

#: Policies by which a full queue loses messages, or refuses them.
_LIMITING = frozenset({OverflowPolicy.REJECT, OverflowPolicy.RING, OverflowPolicy.RING_STRICT})


async def wait_for_room(queue: Queue, size: int, timeout: float) -> bool:
    """Wait until a queue takes a message and loses none for it; its receivers make the room.

    Args:
        queue: that the message is for.
        size: bytes of the message.
        timeout: seconds to wait for the next message that leaves the queue.

    Returns:
        False if there is no room, and none is being made: nobody receives, or nothing has left the queue for so long.
    """
    if _has_room(queue, size):
        return True
    departures = _Departures()
    queue.contents.observers.add(departures)
    try:
        while not _has_room(queue, size):
            if not queue.delivery.consumers:
                return False
            departures.noticed.clear()
            async with asyncio.timeout(timeout):
                await departures.noticed.wait()
    except TimeoutError:
        return False
    finally:
        queue.contents.observers.remove(departures)
    return True


class _Departures(DepthObserver):
    """Notices that a message has left a queue."""

    def __init__(self) -> None:
        self.noticed = asyncio.Event()

    def is_quiet(self, count: int, size: int) -> bool:  # noqa: ARG002
        return False

    def on_dequeued(self, entry: Entry) -> None:  # noqa: ARG002
        self.noticed.set()


def _has_room(queue: Queue, size: int) -> bool:
    """True if the queue takes a message and loses none; an empty one takes or refuses it, but has none to lose."""
    depth = queue.contents.depth
    return queue.settings.overflow not in _LIMITING or depth.fits(1, size) or not depth.count
