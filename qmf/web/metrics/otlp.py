"""Metrics and events to an OpenTelemetry collector, by OTLP over HTTP.

The same families as for Prometheus, as data points of OpenTelemetry: counters as sums that grow, and gauges. Each agent
is a resource (``service.name``, ``service.instance.id``). Events are log records with their severity. The libraries
send from threads of their own; a collector that is away costs what it misses, and a line in the log.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Mapping, Sequence

from opentelemetry._logs import LogRecord, SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics.export import (
    AggregationTemporality,
    Gauge,
    Metric,
    MetricExportResult,
    MetricsData,
    NumberDataPoint,
    ResourceMetrics,
    ScopeMetrics,
    Sum,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.util.instrumentation import InstrumentationScope

from qmf._version import __version__
from qmf.console.aio import Client, EventRaised, Notification, RemoteEvent
from qmf.errors import QmfError
from qmf.schema import Severity
from qmf.web.json_values import to_json
from qmf.web.metrics.collecting import Collected, collect
from qmf.web.metrics.followed_classes import ClassPatterns, FollowedClasses
from qmf.web.metrics.names import MetricFamily, MetricType
from qmf.web.options import MetricsOptions
from qmf.web.problems import Problem

log = logging.getLogger("qmf.web")

#: The largest number that OTLP has as an integer.
_MAX_INTEGER = 2**63 - 1

_SCOPE = InstrumentationScope("qmf.web", __version__)

_SEVERITIES = {
    Severity.EMERG: SeverityNumber.FATAL4,
    Severity.ALERT: SeverityNumber.FATAL2,
    Severity.CRIT: SeverityNumber.FATAL,
    Severity.ERROR: SeverityNumber.ERROR,
    Severity.WARN: SeverityNumber.WARN,
    Severity.NOTICE: SeverityNumber.INFO2,
    Severity.INFORM: SeverityNumber.INFO,
    Severity.DEBUG: SeverityNumber.DEBUG,
}

#: Agents whose loggers are kept.
_MAX_AGENTS = 1000


class OtlpExport:
    """Exports metrics each interval, and events as they come. Belongs to the event loop."""

    def __init__(self, client: Client, followed: FollowedClasses, options: MetricsOptions) -> None:
        """Prepare an export; nothing is sent yet.

        Args:
            followed: has the objects.
            options: `otlp` is the collector's URL, without the paths ``/v1/metrics`` and ``/v1/logs``.
        """
        assert options.otlp is not None
        base = options.otlp.rstrip("/")
        self._client = client
        self._followed = followed
        self._options = options
        self._metrics = OTLPMetricExporter(endpoint=f"{base}/v1/metrics", timeout=10)
        self._processor = BatchLogRecordProcessor(OTLPLogExporter(endpoint=f"{base}/v1/logs", timeout=10))
        self._providers: dict[str, LoggerProvider] = {}
        self._begun = time.time_ns()
        self._task: asyncio.Task[None] | None = None
        self._unlisten: Callable[[], None] = lambda: None
        self._away = False

    def open(self) -> None:
        """Begin."""
        self._unlisten = self._client.listen(self._on_notification)
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        """Send the events that wait, and end."""
        self._unlisten()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await asyncio.to_thread(self._processor.shutdown)
        await asyncio.to_thread(self._metrics.shutdown)

    async def _run(self) -> None:
        while True:
            with contextlib.suppress(QmfError):  # no connection: the next time
                await self._export()
            await asyncio.sleep(self._options.interval)

    async def _export(self) -> None:
        try:
            found = collect(
                await self._followed.objects(ClassPatterns(()), own=self._options.own),
                self._options.families,
                self._options.limit,
            )
        except Problem as problem:
            log.error("no metrics are exported: %s", problem.detail)
            return
        data = metrics_data(found, self._begun, time.time_ns())
        if not data.resource_metrics:
            return
        # On a thread: it waits for the collector.
        result = await asyncio.to_thread(self._metrics.export, data)
        away = result is not MetricExportResult.SUCCESS
        if away and not self._away:
            log.warning("the collector at %s does not take metrics", self._options.otlp)
        self._away = away

    def _on_notification(self, item: Notification) -> None:
        if isinstance(item, EventRaised):
            provider = self._provider(item.event.agent.name)
            provider.get_logger("qmf.web", __version__).emit(log_record(item.event))

    def _provider(self, agent: str) -> LoggerProvider:
        """The provider whose resource is an agent; they share the queue of what is to be sent."""
        provider = self._providers.get(agent)
        if provider is None:
            if len(self._providers) >= _MAX_AGENTS:
                self._providers.clear()
            provider = self._providers[agent] = LoggerProvider(_resource(agent), shutdown_on_exit=False)
            provider.add_log_record_processor(self._processor)
        return provider


def metrics_data(found: Collected, begun: int, now: int) -> MetricsData:
    """The metrics of a scrape as OTLP has them: by agent, then by family.

    Args:
        found: the metrics.
        begun: since when sums are counted as far as is known, in nanoseconds since 1970.
        now: the time of the values.
    """
    agents: dict[str, list[Metric]] = {}
    for item in found.families:
        points: dict[str, list[tuple[dict[str, str], Mapping[str, object]]]] = {}
        for row in item.rows:
            points.setdefault(row.agent, []).append((row.attributes, row.values))
        for agent, rows in points.items():
            metric = _metric(item.family, rows, begun, now)
            if metric is not None:
                agents.setdefault(agent, []).append(metric)
    return MetricsData(
        [
            ResourceMetrics(_resource(agent), [ScopeMetrics(_SCOPE, metrics, "")], "")
            for agent, metrics in agents.items()
        ]
    )


def _metric(
    family: MetricFamily, rows: Sequence[tuple[dict[str, str], Mapping[str, object]]], begun: int, now: int
) -> Metric | None:
    unit = {"seconds": "s", "bytes": "By", "ratio": "1", "celsius": "Cel"}.get(family.unit, f"{{{family.unit}}}")
    unit = unit if family.unit else ""
    points = [
        NumberDataPoint(attributes, begun, now, _number(value, family.divisor))
        for attributes, values in rows
        if isinstance(value := values.get(family.value), (int, float))
        and (family.samples is None or values.get(family.samples))
    ]
    if not points:
        return None
    data: Sum | Gauge
    if family.type is MetricType.COUNTER:
        data = Sum(points, AggregationTemporality.CUMULATIVE, is_monotonic=True)
    else:
        data = Gauge(points)
    return Metric(family.name, family.help, unit, data)


def _number(value: int | float, divisor: int) -> int | float:
    if divisor != 1:
        return value / divisor
    if isinstance(value, float):
        return value
    return int(value) if abs(value) <= _MAX_INTEGER else float(value)


def log_record(event: RemoteEvent) -> LogRecord:
    """An event as a log record; its arguments are attributes."""
    key, level = event.class_key, event.level
    name = f"{key.package}:{key.name}" if key else "event"
    types = {} if event.schema is None else {item.name: item.type for item in event.schema.arguments}
    attributes: dict[str, str | int | float | bool] = {}
    for argument, value in event.arguments.items():
        made = to_json(value, types.get(argument))
        attributes[f"qmf.argument.{argument}"] = made if isinstance(made, (str, int, float, bool)) else str(made)
    if event.object_id is not None:
        attributes["qmf.object"] = event.object_id.object_name
    return LogRecord(
        timestamp=event.timestamp,
        observed_timestamp=time.time_ns(),
        severity_text=None if level is None else level.schema_name,
        severity_number=SeverityNumber.UNSPECIFIED if level is None else _SEVERITIES[level],
        body=" ".join((name, *(f"{argument}={value}" for argument, value in event.arguments.items()))),
        attributes=attributes,
        event_name=name,
    )


def _resource(agent: str) -> Resource:
    vendor, product, instance = [*agent.split(":", 2), "", ""][:3]
    return Resource(
        {
            "service.namespace": vendor,
            "service.name": product or agent,
            "service.instance.id": instance,
            "qmf.agent": agent,
        }
    )
