"""`qmf-pipeline silences`: add, list, expire."""

from __future__ import annotations

import argparse
import getpass
import json
import time
from collections.abc import Callable

from qmf.pipeline.commands.alerts import add_matchers, add_state, read_matchers, state_folder, table
from qmf.pipeline.commands.base import Subcommand, print_line
from qmf.pipeline.errors import PipelineError
from qmf.views.times import duration_text, parse_duration

_SECOND = 10**9


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
    add_state(parser)
    add_matchers(parser, "labels of the alerts: NAME, severity=crit, agent=~'qmf:host:.*'; all must match", needed=True)
    add = parser.add_argument
    add("-c", "--comment", required=True, metavar="TEXT", help="why")
    add("-a", "--author", metavar="NAME", help="who; default: this user")
    add("-d", "--duration", type=_argument_type(parse_duration), metavar="TIME", help="how long, e.g. 2h; default: 1h")
    add(
        "--start", type=_argument_type(_time), metavar="TIME", help="from when, e.g. 2030-01-31T12:00:00Z; default: now"
    )
    add("--end", type=_argument_type(_time), metavar="TIME", help="until when, instead of --duration")


def _add(options: argparse.Namespace) -> None:
    from qmf.pipeline.notifying.silences import SilenceFile

    if options.duration is not None and options.end is not None:
        raise PipelineError("give either --duration or --end")
    now = time.time_ns()
    start = now if options.start is None else options.start
    end = options.end if options.end is not None else start + (options.duration or 3600 * _SECOND)
    silence = SilenceFile(state_folder(options)).add(
        read_matchers(options),
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
    add_state(parser)
    add_matchers(parser, "only silences with these matchers")
    parser.add_argument("--expired", action="store_true", help="the expired ones instead of the others")
    parser.add_argument("--json", action="store_true", help="print JSON")


def _list(options: argparse.Namespace) -> None:
    from qmf.pipeline.notifying.silences import SilenceFile, SilenceState, format_time

    now = time.time_ns()
    wanted = set(read_matchers(options))
    silences = [
        silence
        for silence in SilenceFile(state_folder(options)).read()
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
            format_time(silence.starts_ns // _SECOND * _SECOND),
            format_time(silence.ends_ns // _SECOND * _SECOND),
            silence.created_by,
            ", ".join(map(str, silence.matchers)),
            silence.comment,
        )
        for silence in silences
    ]
    for line in table(("ID", "STATE", "FROM", "UNTIL", "AUTHOR", "MATCHERS", "COMMENT"), rows):
        print_line(line)


def _expire_options(parser: argparse.ArgumentParser) -> None:
    add_state(parser)
    parser.add_argument("ids", nargs="+", metavar="ID", help="of the silence, or the beginning of it")


def _expire(options: argparse.Namespace) -> None:
    from qmf.pipeline.notifying.silences import SilenceFile

    file = SilenceFile(state_folder(options))
    for id in options.ids:
        silence = file.expire(id, time.time_ns())
        lasted = duration_text(max(0, silence.ends_ns - silence.starts_ns) // _SECOND * _SECOND)
        print_line(f"{silence.id}: ended after {lasted}")


COMMAND = Subcommand(
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
