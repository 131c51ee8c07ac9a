"""Durable links whose connection is lost at a chosen frame, also with the end of a broker: every message comes once."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

import pytest
from broker.federation.federated import IN, OUT, FederatedBroker, send
from support.frame_cutter import Cut, FrameCutter, Performative
from support.waiting import until

from qmf.broker.federation.incoming import IncomingBrokerLink
from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.nodes.recorder import OnStored
from qmf.broker.operations.principal import BROKER

#: The frames of a transfer and of what follows, by which way they go on a link from the other broker, and on one to it.
FRAMES: Mapping[str, tuple[Performative, bool]] = {
    "the message": (Performative.TRANSFER, True),
    "its acceptance": (Performative.DISPOSITION, False),
    "its settlement": (Performative.DISPOSITION, True),
}


def contents(broker: FederatedBroker, queue: str) -> list[str]:
    """What is available in a queue."""
    waiting = broker.queue(queue).contents.waiting()
    return [entry.message.data.rpartition(b"\xa1")[2][1:].decode() for entry in waiting]


class Ends:
    """Two brokers with a durable link between them, of which either may end as if it was killed.

    Attributes:
        brokers: the one that has the link, and the other one.
    """

    def __init__(self, folder: Path, stack: AsyncExitStack, *, pull: bool) -> None:
        self._folder = folder
        self._stack = stack
        self._pull = pull
        self.brokers: dict[str, FederatedBroker] = {}

    async def start(self) -> None:
        """Begin, with a link."""
        for name in ("own", "other"):
            await self._begin(name, self._folder / name)
        self.proxy = self._stack.enter_context(FrameCutter(self.brokers["other"].url))
        own = self.brokers["own"]
        own.domain(self.proxy.url, durable=True)
        own.link(IN if self._pull else OUT, "q" if self._pull else "p", "p" if self._pull else "q", durable=True)
        await own.state(PeerLinkState.OPERATIONAL)

    async def _begin(self, name: str, folder: Path) -> None:
        is_new = not folder.exists()
        self.brokers[name] = broker = await self._stack.enter_async_context(FederatedBroker(port=0, data_dir=folder))
        for queue in ("p", "q") if is_new else ():
            declaration = read_node_declaration(("queue",), {"durable": True}, limits=broker.registry.limits)
            broker.operations.create(BROKER, queue, declaration)

    async def kill(self, name: str) -> None:
        """One ends with what it has on the disk now, and begins again."""
        copy = self._folder / f"{name} again"
        shutil.copytree(self._folder / name, copy)
        await self.brokers[name].close()
        await self._begin(name, copy)
        if name == "other":
            self.proxy.redirect(self.brokers[name].url)

    @property
    def source(self) -> FederatedBroker:
        """Where messages are sent to."""
        return self.brokers["other" if self._pull else "own"]

    @property
    def target(self) -> FederatedBroker:
        """Where they come to."""
        return self.brokers["own" if self._pull else "other"]

    @property
    def queues(self) -> tuple[str, str]:
        """The queues at source and target."""
        return ("q", "p") if self._pull else ("p", "q")


@asynccontextmanager
async def ends(folder: Path, *, pull: bool) -> AsyncIterator[Ends]:
    """Two brokers with a link between them."""
    async with AsyncExitStack() as stack:
        made = Ends(folder, stack, pull=pull)
        await made.start()
        yield made


@pytest.mark.slow
@pytest.mark.parametrize("killed", ["nobody", "own", "other"])
@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("pull", [True, False], ids=["incoming", "outgoing"])
async def test_a_connection_is_lost_at_a_frame(pull: bool, frame: str, killed: str, tmp_path: Path) -> None:
    async with ends(tmp_path, pull=pull) as made:
        performative, from_source = FRAMES[frame]
        to_broker = from_source is not pull
        made.proxy.cut_at(Cut(performative, to_broker, passed=False, refuse=True))
        source, target = made.queues
        await send(made.source, source, "one", durable=True)
        await made.brokers["own"].state(PeerLinkState.WAITING)
        if killed != "nobody":
            await made.kill(killed)
        made.proxy.refuse(False)
        await made.brokers["own"].state(PeerLinkState.OPERATIONAL)
        await send(made.source, source, "two", durable=True)
        await until(lambda: made.source.depth(source) == 0, lambda: f"{contents(made.source, source)}")
        assert contents(made.target, target) == ["one", "two"]


@pytest.mark.slow
async def test_what_is_stored_while_the_link_is_asked_for_again_comes_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was listed without an outcome, and has one when the other broker asks for it."""
    waiting: list[Callable[[], None]] = []
    async with ends(tmp_path, pull=True) as made:
        recorder = made.target.registry.recorder
        assert recorder is not None
        close_unit, on_attached = recorder.close_unit, IncomingBrokerLink.on_attached

        def close_later(stored: OnStored | None) -> bool:
            return close_unit(None if stored is None else lambda error: waiting.append(partial(stored, error)))

        def store_before(link: IncomingBrokerLink) -> None:
            while waiting:
                waiting.pop()()
            on_attached(link)

        monkeypatch.setattr(recorder, "close_unit", close_later)
        monkeypatch.setattr(IncomingBrokerLink, "on_attached", store_before)
        source, target = made.queues
        await send(made.source, source, "one", durable=True)
        await until(lambda: len(waiting) == 1, "it is on the disk")
        made.proxy.cut()
        await until(lambda: made.source.depth(source) == 0, lambda: f"{contents(made.target, target)}")
        assert contents(made.target, target) == ["one"]
