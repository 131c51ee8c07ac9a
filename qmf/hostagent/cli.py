"""`qmf-host-agent`: the host agent as a program.

Exit codes: 0 ended by a signal, 2 wrong arguments or no connection.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from qmf._completion import add_completion_option
from qmf._event_loop import on_end_signals, run
from qmf._option_values import regular_expression, seconds_between, whole_number_between
from qmf._version import __version__
from qmf.connecting import BrokerTarget, add_connection_options, read_connections
from qmf.errors import QmfError
from qmf.hostagent.settings import (
    DEFAULT_INTERVAL,
    DEFAULT_THRESHOLD,
    DEFAULT_TOP,
    MAX_INTERVAL,
    MIN_INTERVAL,
    ProcessSelection,
    Settings,
)

if TYPE_CHECKING:
    from qmf.hostagent.agent import HostAgent

DEFAULT_URL = "amqp://127.0.0.1:5672"

_EXIT_ERROR = 2


def main(argv: Sequence[str] | None = None) -> int:
    """Run the host agent until SIGTERM or SIGINT.

    Args:
        argv: arguments without the program's name; None takes those of the process.

    Returns:
        the exit code.

    Raises:
        SystemExit: with 2 for wrong arguments, with 0 for `--help` and `--version`.
    """
    options = _parser().parse_args(argv)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.WARNING,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    settings = Settings(
        interval=options.interval,
        instance=options.instance,
        threshold=options.threshold,
        selection=options.processes,
        watch=tuple(options.process),
        allow_signals=options.allow_signals,
        command_lines=options.command_lines,
        audit=options.audit,
    )
    try:
        target = read_connections(options, prog="qmf-host-agent", default=DEFAULT_URL).target
        run(_serve(target, settings, wait=options.wait))
    except QmfError as error:
        print(f"qmf-host-agent: {error}", file=sys.stderr)
        return _EXIT_ERROR
    return 0


async def _serve(target: BrokerTarget, settings: Settings, *, wait: bool) -> None:
    """Serve until a signal arrives; a signal while connecting ends the connection attempt."""
    # Imported here: --help does not need psutil.
    from qmf.hostagent.agent import HostAgent

    stop = asyncio.Event()
    with on_end_signals(stop.set):
        await _serve_until(stop, HostAgent(target.make_bus(), settings, domain=target.domain, wait=wait))


async def _serve_until(stop: asyncio.Event, agent: HostAgent) -> None:
    stopping = asyncio.create_task(stop.wait())
    starting = asyncio.create_task(agent.start())
    connecting: asyncio.Task[None] | None = None
    try:
        await asyncio.wait({starting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not starting.done():
            return
        await starting
        if not agent.agent.connected:
            print(f"Host agent {agent.name} waits for {agent.url}", flush=True)
        connecting = asyncio.create_task(agent.agent.wait_connected())
        await asyncio.wait({connecting, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if connecting.done():
            print(f"Host agent {agent.name} on {agent.url}", flush=True)
        await stopping
    finally:
        tasks = [task for task in (starting, stopping, connecting) if task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await agent.close()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="qmf-host-agent",
        description="Describe this machine on a QMF management bus, until SIGTERM or Ctrl-C.",
        allow_abbrev=False,
    )
    add_connection_options(
        parser.add_argument_group("connecting"), broker=f"broker to connect to (default: {DEFAULT_URL})"
    )
    add = parser.add_argument
    add(
        "--interval",
        metavar="SECONDS",
        type=seconds_between(MIN_INTERVAL, MAX_INTERVAL),
        default=DEFAULT_INTERVAL,
        help="time from sample to sample (default: %(default)g)",
    )
    _add_processes_options(parser)
    add(
        "--threshold",
        metavar="PERCENT",
        type=whole_number_between(1, 100),
        default=DEFAULT_THRESHOLD,
        help="usage of a filesystem above which an event warns; consoles can change it for each filesystem "
        "(default: %(default)s)",
    )
    add("--instance", metavar="NAME", help="last part of the agent's name (default: name of the machine)")
    add("--audit", action="store_true", help="raise an event for each method call, with caller, arguments and result")
    add(
        "--no-wait",
        dest="wait",
        action="store_false",
        help="end with an error if the broker cannot be reached at the start, instead of waiting for it",
    )
    add("-v", "--verbose", action="store_true", help="log everything, not only warnings")
    add_completion_option(parser)
    add("--version", action="version", version=f"%(prog)s {__version__}")
    return parser


def _add_processes_options(parser: argparse.ArgumentParser) -> None:
    """Options about the processes that are shown."""
    add = parser.add_argument
    add(
        "--processes",
        metavar="WHICH",
        type=_selection,
        help="processes to show besides the agent's own and the watched ones: all, none, or top:N for the N with "
        f"the most main memory (default: top:{DEFAULT_TOP}, or none with --process)",
    )
    add(
        "--process",
        metavar="PATTERN",
        type=regular_expression,
        action="append",
        default=[],
        help="watch the processes whose name or command line this regular expression matches: show them, and raise an "
        "event when one starts or ends (may be given several times)",
    )
    add(
        "--allow-signals",
        action="store_true",
        help="let consoles send signals to the processes shown: anyone with access to the broker can then end them",
    )
    add(
        "--command-lines",
        action="store_true",
        help="show the command lines of processes: every console can then read passwords given as arguments",
    )


def _selection(text: str) -> ProcessSelection:
    try:
        return ProcessSelection.parse(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
