"""The backend over a real broker: lost and refused connections."""

from __future__ import annotations

import threading

import pytest
from qmf_shell.session.console_backend import BackendCallbacks, ConsoleBackend
from support.crowd import Crowd
from support.scripted_agent import PACKAGE, ScriptedAgent
from support.waiting import WAIT_LIMIT, wait_until

from qmf._loop_thread import LoopThread
from qmf.broker import EmbeddedBroker
from qmf.bus import AmqpBus
from qmf.errors import ConnectError, DisconnectedError
from qmf.views.events import EventView

pytestmark = pytest.mark.slow


def test_a_lost_connection_is_reported() -> None:
    lost = threading.Event()
    callbacks = BackendCallbacks(on_change=lost.set)
    with (
        EmbeddedBroker() as broker,
        ConsoleBackend(broker.url, timeout=10, callbacks=callbacks, objects=False) as live,
    ):
        before = live.status
        lost.clear()
        broker.close()
        assert lost.wait(10)
        after = live.status
        assert (before.connected, after.connected) == (True, False)
        assert after.reason
        with pytest.raises(DisconnectedError):
            live.objects([("qmf.host", "memory")])


def test_a_session_that_runs_some_commands_and_ends_waits_for_agents_that_answer_late(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qmf.console.aio.agent_search.MISSING_QUIET", WAIT_LIMIT)
    monkeypatch.setattr("qmf.console.aio.agent_search.LONGEST_QUIET", WAIT_LIMIT)
    loop = LoopThread("test-crowd")
    with EmbeddedBroker(management=3600.0) as broker:
        crowd = Crowd(AmqpBus(broker.url), 20)
        loop.run(crowd.start())
        crowd.hold(after=2)
        status: list[str] = []

        def release(*_: object) -> None:
            # The third is the last one for now: the broker's own agent, and two of the crowd.
            status.append(live.status.finding)
            if len(status) == 3:
                loop.call_soon(crowd.release_soon)

        callbacks = BackendCallbacks(on_agent_found=release)
        live = ConsoleBackend(broker.url, timeout=WAIT_LIMIT, callbacks=callbacks, objects=False)
        with live:
            assert len(live.agents()) == 21
            assert len(live.objects([(PACKAGE, "widget")]).items) == 20
            assert live.status.finding == ""
        # The first may have been found before the search began.
        assert "still finding agents" in status[2]
        loop.run(crowd.close())
        loop.stop()


def test_a_refused_connection() -> None:
    with EmbeddedBroker() as broker:
        url = broker.url
    with (
        pytest.raises(ConnectError, match="refused"),
        ConsoleBackend(url, timeout=5, callbacks=BackendCallbacks(), objects=False),
    ):
        pass


def test_events_that_did_not_arrive_are_reported_where_they_are_missing() -> None:
    heard: list[EventView] = []
    loop = LoopThread("test-agent")
    with EmbeddedBroker() as broker:
        agent = ScriptedAgent(AmqpBus(broker.url))
        loop.run(agent.start())
        callbacks = BackendCallbacks(on_event=heard.append)
        with ConsoleBackend(broker.url, timeout=WAIT_LIMIT, callbacks=callbacks, objects=False) as live:
            for sequence in (1, 4):
                loop.run(agent.raise_event({"name": "a"}, sequence=sequence))
            wait_until(lambda: len(heard) == 3, "two events, and what is missing between them")
            assert [item.short_name for item in heard] == ["widgetAlarm", "lost", "widgetAlarm"]
            assert str(heard[1]) == f"2 events of agent {agent.info.name} did not arrive"
            assert heard[1].broker == live.status.url
        loop.run(agent.bus.close())
    loop.stop()
