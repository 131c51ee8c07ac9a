"""The options of `correlate` about notifications, and the notifier that they describe."""

from __future__ import annotations

import argparse
import platform
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from qmf.pipeline.commands.base import add_broker, broker_target, duration, print_line, print_or_stop
from qmf.pipeline.lake.location import local_path
from qmf.views.times import parse_duration

if TYPE_CHECKING:
    from qmf.pipeline.correlate.batch_input import CorrelateOptions
    from qmf.pipeline.correlate.reporter import CorrelationReporter
    from qmf.pipeline.notifying.config_file import ConfigSource
    from qmf.pipeline.notifying.job import JobNotifier


def add_notify(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    add = parser.add_argument
    add(
        "--notify",
        type=Path,
        metavar="FILE",
        help="routes and receivers of notifications, in TOML; default: those in the file of the rules",
    )
    add("--state", metavar="DIR", help="folder of the notifications' state; default: OUT/_notify")
    add("--raise", dest="publish", action="store_true", help="publish every alert on the bus, as an agent")
    add_broker(parser, "for --raise, and receivers that are the bus: ")
    add("--instance", metavar="NAME", help="last part of the agent's name; default: the machine's name")
    add(
        "--max-age",
        type=duration,
        default="1 hour",
        metavar="TIME",
        help="nobody is notified of alerts that ended longer ago than this",
    )


def _source(options: argparse.Namespace) -> ConfigSource:
    from qmf.pipeline.notifying.config_file import ConfigSource

    return ConfigSource(notify=options.notify, rules=Path(options.rules), publish=options.publish)


def open_notifier(
    stack: ExitStack, options: argparse.Namespace, correlate_options: CorrelateOptions, stop: threading.Event
) -> JobNotifier | None:
    """The notifier of a job, closed with the stack; None where nobody is to be notified.

    Raises:
        QmfError: the configuration is wrong; no connection; the file system failed.
    """
    from qmf.pipeline.notifying.config import bus_config
    from qmf.pipeline.notifying.job import JobNotifier
    from qmf.pipeline.notifying.overview import NOTIFY_FOLDER

    source = _source(options)
    config = source.read()
    if config is None:
        return None
    folder = Path(options.state) if options.state else local_path(correlate_options.out) / NOTIFY_FOLDER
    bus = _bus(stack, options, correlate_options, stop) if config.uses_bus else None
    notifier = JobNotifier(
        folder,
        source,
        config,
        correlate_options.rules,
        print_or_stop(stop.set),  # its threads must outlive a failure to print
        bus=bus,
        max_age=parse_duration(options.max_age),
    )
    stack.callback(notifier.close)
    stack.callback(stop.set)  # what waits for the broker then ends
    if config != bus_config():  # which has a line of its own
        print_line(f"Notifying {', '.join(sorted(config.integrations)) or 'nobody'}")
    return notifier


def _bus(
    stack: ExitStack, options: argparse.Namespace, correlate_options: CorrelateOptions, stop: threading.Event
) -> CorrelationReporter:
    from qmf.pipeline.correlate.reporter import CorrelationReporter

    target = broker_target(options)
    reporter = CorrelationReporter(
        target.make_bus(),
        correlate_options.rules,
        correlate_options.out,
        stop,
        lake=options.lake,
        late=correlate_options.late,
        domain=target.domain,
        instance=options.instance or platform.node() or "localhost",
    )
    stack.callback(reporter.close)
    print_line(f"Raising alerts at {target} as {reporter.name}")
    return reporter
