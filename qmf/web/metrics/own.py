"""Metrics of the server itself: the agents that it sees, its connection, its streams, the last scrape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client import CollectorRegistry, exposition
from prometheus_client.core import GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.registry import Collector

from qmf._version import __version__
from qmf.web.consoles import WebConsole
from qmf.web.services import WebServices


class OwnMetrics(Collector):
    """The metrics of one server.

    Attributes:
        series: of the last scrape.
        left_out: classes that were left out of it, since they have too many series, with how many.
        collecting: classes that it lacks, since their agents had not all answered yet.
        seconds: that its collection took.
    """

    def __init__(self, services: WebServices, console: WebConsole) -> None:
        """Make them.

        Args:
            console: of those who ask. Where it does not show everything, numbers about all agents are left out.
        """
        self._services = services
        self._console = console
        self._registry = CollectorRegistry()
        self._registry.register(self)
        self.series = 0
        self.left_out: Mapping[str, int] = {}
        self.collecting = 0
        self.seconds = 0.0

    def collect(self) -> Iterator[Metric]:
        client = self._services.client
        yield InfoMetricFamily("qmf_web", "The version of qmf-web", {"version": __version__})
        yield _gauge("qmf_web_connected", "1 while there is a connection to the broker", int(client.connected))
        if self._console is client:
            yield from self._of_server()
        text = "Classes that this scrape lacks, since their agents have not all answered yet"
        yield _gauge("qmf_web_scrape_collecting_classes", text, self.collecting)
        text = "Series of classes that this scrape lacks, since they are more than the limit"
        left_out = GaugeMetricFamily("qmf_web_scrape_left_out_series", text, labels=["class"])
        for name, count in self.left_out.items():
            left_out.add_metric([name], count)
        yield left_out
        heard = GaugeMetricFamily(
            "qmf_agent_heard_timestamp_seconds",
            "Time of the last message of an agent about itself, by its clock; absent when it is gone",
            labels=["agent"],
        )
        for agent in self._console.agents:
            heard.add_metric([agent.name], agent.info.timestamp / 10**9)
        yield heard

    def _of_server(self) -> Iterator[Metric]:
        yield _gauge("qmf_web_streams", "Open event streams and websockets", self._services.access.streams.open)
        yield _gauge("qmf_web_scrape_series", "Series of the last scrape", self.series)
        yield _gauge("qmf_web_scrape_duration_seconds", "Time that collecting the last scrape took", self.seconds)
        broken = GaugeMetricFamily("qmf_web_invalid_messages", "Messages of agents that were not valid")
        broken.add_metric([], self._services.client.broken)
        yield broken

    def text(self, *, openmetrics: bool) -> str:
        """All of them; for OpenMetrics with the mark of the end."""
        generate = openmetrics_exposition.generate_latest if openmetrics else exposition.generate_latest
        return generate(self._registry).decode()


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(name, text, value)
