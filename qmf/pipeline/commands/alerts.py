"""`qmf-pipeline alerts`, and `silences`: add, list, expire."""

from __future__ import annotations

import argparse
import getpass
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from qmf.pipeline.commands.base import Subcommand, add_options, print_line
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.lake.location import local_path
from qmf.views.times import duration_text, parse_duration

if TYPE_CHECKING:
    from qmf.pipeline.notifying.matchers import Matcher
    from qmf.pipeline.notifying.overview import NotificationOverview, ShownAlert

_SECOND = 10**9

_STATES = ("firing", "pending", "silenced", "inhibited", "resolved")


#: Where the state of notifications is, for `_state_folder`.
_STATE_OPTIONS = """
    --lake DIR  folder of the lake
    --state DIR  folder of the notifications' state, where correlate has --out or --state; default:
        LAKE/_tables/correlate/_notify
"""


def _state_folder(options: argparse.Namespace) -> Path:
    """The folder of the state; `PipelineError` if neither option was given, or there is no such lake."""
    from qmf.pipeline.notifying.overview import NOTIFY_FOLDER

    if options.state:
        return Path(options.state)
    if options.lake:
        if not local_path(options.lake).is_dir():
            raise PipelineError(f"{options.lake}: no such folder")
        return local_path(f"{options.lake.rstrip('/')}/_tables/correlate/{NOTIFY_FOLDER}")
    raise PipelineError("give --lake, or --state with the folder of the notifications' state")


def _add_matchers(parser: argparse.ArgumentParser, help: str, *, needed: bool = False) -> None:
    """Add matchers as arguments, for `_read_matchers`."""
    parser.add_argument("matchers", nargs="+" if needed else "*", metavar="MATCHER", help=help)


def _read_matchers(options: argparse.Namespace) -> tuple[Matcher, ...]:
    """The matchers of a command line; `PipelineError` if an argument is not a matcher."""
    from qmf.pipeline.notifying.matchers import parse_query

    try:
        return parse_query(options.matchers)
    except ValueError as error:
        raise PipelineError(str(error)) from error


def _options(parser: argparse.ArgumentParser) -> None:
    _add_matchers(parser, "only alerts with these labels: NAME, severity=crit, agent=~'qmf:host:.*'")
    text = f"""{_STATE_OPTIONS}
        --only STATE  only alerts in this state: {", ".join(_STATES)}
        --receivers  show what was delivered to each receiver instead
        --json  print JSON
        --check FILE  only check a configuration of notifications, and print all errors
    """
    add_options(parser, text, only={"choices": _STATES}, check={"type": Path})


def _check(path: Path) -> None:
    from qmf.pipeline.notifying.config_file import load_config

    integrations = load_config(path).integrations
    print_line(f"{path}: no error; receivers: {', '.join(sorted(integrations)) or 'none'}")


def _run(options: argparse.Namespace) -> None:
    if options.check is not None:
        _check(options.check)
        return
    now = time.time_ns()
    overview, failures = _read(options, now)
    for text in failures:
        print(f"qmf-pipeline: {text}", file=sys.stderr)
    if options.receivers:
        _print_receivers(overview, as_json=options.json)
        return
    alerts = [item for item in overview.alerts if options.only in (None, item.state)]
    if options.json:
        print_line(json.dumps([item.to_json() for item in alerts], indent=2, ensure_ascii=False))
        return
    rows = []
    for item in alerts:
        age = duration_text(max(0, now - item.alert.starts_ns) // _SECOND * _SECOND)
        rows.append((item.state, item.alert.name, item.alert.labels.get("severity", ""), age, item.alert.summary))
    lines = _table(("STATE", "ALERT", "SEVERITY", "SINCE", "SUMMARY"), rows)
    print_line(lines[0] if alerts else "no alerts")
    for item, line in zip(alerts, lines[1:], strict=True):
        print_line(line)
        for detail in _details(item, now):
            print_line(f"    {detail}")


def _read(options: argparse.Namespace, now: int) -> tuple[NotificationOverview, Sequence[str]]:
    """The alerts of a job, with or without notifications; and the errors of its rules, a line for each."""
    from qmf.pipeline.correlate.stream_state import read_failures
    from qmf.pipeline.notifying.overview import NOTIFY_FOLDER, read_overview, read_table_overview
    from qmf.pipeline.notifying.state import STATE

    folder, matchers = _state_folder(options), _read_matchers(options)
    # A folder of its own does not tell where the tables are.
    out = folder.parent if folder.name == NOTIFY_FOLDER else None
    failures = () if out is None else read_failures(out)
    if out is None or options.receivers or (folder / STATE).exists():
        return read_overview(folder, matchers, now), failures
    return read_table_overview(out, matchers), failures


def _seconds(ns: int) -> str:
    from qmf.pipeline.notifying.silences import format_time

    return format_time(ns // _SECOND * _SECOND)


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines with columns of the same width."""
    clean = [[" ".join(cell.split()) for cell in row] for row in (head, *rows)]
    widths = [max(len(row[index]) for row in clean) for index in range(len(head) - 1)]
    return ["  ".join([*map(str.ljust, row[:-1], widths), row[-1]]).rstrip() for row in clean]


def _details(item: ShownAlert, now: int) -> list[str]:
    """What more there is to know, a line each."""
    labels = {name: value for name, value in item.alert.labels.items() if name not in ("alertname", "severity")}
    found = [", ".join(f"{name}={value}" for name, value in labels.items())] if labels else []
    silence, source = item.mute.silence, item.mute.inhibited_by
    if silence is not None:
        left = duration_text((silence.ends_ns - now) // _SECOND * _SECOND)
        found.append(f"silenced by {silence.created_by} for another {left}: {silence.comment} ({silence.id[:8]})")
    if source is not None:
        ended = "" if source.ends_ns is None else ", which ended a short time ago"
        found.append(f"inhibited by {source.name}{ended}: {source.summary}")
    if item.owed:
        found.append(f"still to be told: {', '.join(item.owed)}")
    return found


def _print_receivers(overview: NotificationOverview, *, as_json: bool) -> None:
    from qmf.pipeline.notifying.silences import format_time

    counts = sorted(overview.counts.items())
    if as_json:
        content = {
            key: {
                "delivered": own.delivered, "failed": own.failed, "alerts": own.alerts, "lastError": own.last_error,
                "lastAttempt": format_time(own.last_at),
            }
            for key, own in counts
        }  # fmt: skip
        print_line(json.dumps(content, indent=2, ensure_ascii=False))
        return
    rows = [
        (key, str(own.delivered), str(own.failed), str(own.alerts), _seconds(own.last_at), own.last_error)
        for key, own in counts
    ]
    if not rows:
        print_line("nothing was sent yet")
        return
    for line in _table(("RECEIVER", "DELIVERED", "FAILED", "ALERTS", "LAST ATTEMPT", "ERROR"), rows):
        print_line(line)


ALERTS = Subcommand("alerts", "Show the active alerts, and what silences or inhibits them", _options, _run, lake=False)


def _argument_type(parse: Callable[[str], int]) -> Callable[[str], int]:
    def read(text: str) -> int:
        try:
            return parse(text)
        except (ValueError, OverflowError) as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    return read


def _time(text: str) -> int:
    from qmf.pipeline.notifying.silences import parse_time

    return parse_time(text)


def _add_options(parser: argparse.ArgumentParser) -> None:
    help = "labels of the alerts: NAME, severity=crit, agent=~'qmf:host:.*'; all must match"
    _add_matchers(parser, help, needed=True)
    text = f"""{_STATE_OPTIONS}
        -c, --comment TEXT  why
        -a, --author NAME  who; default: this user
        -d, --duration TIME  how long, e.g. 2h; default: 1h
        --start TIME  from when, e.g. 2030-01-31T12:00:00Z; default: now
        --end TIME  until when, instead of --duration
    """
    moment, length = {"type": _argument_type(_time)}, {"type": _argument_type(parse_duration)}
    add_options(parser, text, comment={"required": True}, duration=length, start=moment, end=moment)


def _add(options: argparse.Namespace) -> None:
    from qmf.pipeline.notifying.silences import SilenceFile

    if options.duration is not None and options.end is not None:
        raise PipelineError("give either --duration or --end")
    now = time.time_ns()
    start = now if options.start is None else options.start
    end = options.end if options.end is not None else start + (options.duration or 3600 * _SECOND)
    silence = SilenceFile(_state_folder(options)).add(
        _read_matchers(options),
        start=start,
        end=end,
        created_by=options.author or _user(),
        comment=options.comment,
        now=now,
    )
    print_line(silence.id)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError) as error:
        raise PipelineError("this user has no name; give --author") from error


def _list_options(parser: argparse.ArgumentParser) -> None:
    _add_matchers(parser, "only silences with these matchers")
    add_options(parser, f"{_STATE_OPTIONS}--expired  the expired ones instead of the others\n--json  print JSON")


def _list(options: argparse.Namespace) -> None:
    from qmf.pipeline.notifying.silences import SilenceFile, SilenceState

    now = time.time_ns()
    wanted = set(_read_matchers(options))
    silences = [
        silence
        for silence in SilenceFile(_state_folder(options)).read()
        if (silence.state(now) is SilenceState.EXPIRED) == options.expired and wanted <= set(silence.matchers)
    ]
    if options.json:
        content = [{**silence.to_json(), "status": {"state": silence.state(now).value}} for silence in silences]
        print_line(json.dumps(content, indent=2, ensure_ascii=False))
        return
    if not silences:
        print_line("no silences")
        return
    rows = [
        (
            silence.id,
            silence.state(now).value,
            _seconds(silence.starts_ns),
            _seconds(silence.ends_ns),
            silence.created_by,
            ", ".join(map(str, silence.matchers)),
            silence.comment,
        )
        for silence in silences
    ]
    for line in _table(("ID", "STATE", "FROM", "UNTIL", "AUTHOR", "MATCHERS", "COMMENT"), rows):
        print_line(line)


def _expire_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ids", nargs="+", metavar="ID", help="of the silence, or the beginning of it")
    add_options(parser, _STATE_OPTIONS)


def _expire(options: argparse.Namespace) -> None:
    from qmf.pipeline.notifying.silences import SilenceFile

    file = SilenceFile(_state_folder(options))
    for id in options.ids:
        silence = file.expire(id, time.time_ns())
        lasted = duration_text(max(0, silence.ends_ns - silence.starts_ns) // _SECOND * _SECOND)
        print_line(f"{silence.id}: ended after {lasted}")


SILENCES = Subcommand(
    "silences",
    "Silence alerts for a time",
    actions=(
        Subcommand("add", "Add a silence, and print its id", _add_options, _add, lake=False),
        Subcommand("list", "Show silences", _list_options, _list, lake=False),
        Subcommand(
            "expire", "End silences now; they stay in the list of expired ones", _expire_options, _expire, lake=False
        ),
    ),
)
