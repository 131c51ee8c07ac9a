"""Producer flow control."""

from __future__ import annotations

from broker.nodes.parts import message, put, queue

from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import QueueLimits, QueueSettings, Threshold


def test_the_flow_stops_at_one_depth_and_resumes_below_another() -> None:
    it, _, _ = queue(flow_stop=Threshold(3), flow_resume=Threshold(2))
    flow = it.flow
    assert flow is not None
    put(it, "ab")
    assert not flow.stopped
    put(it, "cd")
    resumed: list[bool] = []
    flow.when_resumed(lambda: resumed.append(True))
    it.contents.purge(2)
    assert (flow.stopped, it.counters.flow_stops, resumed) == (True, 1, [])
    it.contents.purge(1)
    assert (flow.stopped, resumed) == (False, [True])
    put(it, "abc")
    assert (flow.stopped, it.counters.flow_stops, resumed) == (True, 2, [True])


def test_bytes_stop_the_flow_too_and_without_another_depth_it_resumes_below_the_same() -> None:
    it, _, _ = queue(flow_stop=Threshold(None, 5))
    assert it.flow is not None
    it.enqueue(message("123456"))
    assert it.flow.stopped
    it.contents.purge()
    assert not it.flow.stopped


def test_the_registry_tells_whose_flow_has_stopped_and_deleting_resumes_it() -> None:
    registry = NodeRegistry()
    settings = QueueSettings(flow_stop=Threshold(2), limits=QueueLimits())
    it = registry.declare_queue("q", settings)
    registry.publish(it, message("a"))
    stopped = registry.stopped
    assert stopped is None
    registry.publish(it, message("b"))
    flow = it.flow
    assert flow is not None
    assert registry.stopped == flow
    resumed: list[bool] = []
    flow.when_resumed(lambda: resumed.append(True))
    registry.delete_queue(it)
    assert resumed == [True]
    registry.publish(None, message("c"))
    assert registry.stopped is None
