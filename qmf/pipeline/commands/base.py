"""What subcommands share: their declaration, common options, output, and options from a file.

A TOML file, which the command line overrides, has a table for each subcommand, `[all]` for options that several share,
and `[spark]` for settings of Spark. What would have no effect is refused: options in `[all]` that no command has, and
in a table that its command has not. The keys are the names of the long options.
"""

from __future__ import annotations

import argparse
import datetime
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from qmf._toml import TomlFile, read_toml
from qmf.connecting import BrokerTarget, add_connection_options, read_connections
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.location import is_local, kind_path, local_path
from qmf.views.times import parse_duration

_DAYS_AGO = {"today": 0, "yesterday": 1}

DEFAULT_MASTER = "local[*]"

DEFAULT_URL = "amqp://127.0.0.1:5672"


@attrs.frozen
class Subcommand:
    """One subcommand."""

    name: str  #: what the user types
    help: str  #: one line without a full stop
    #: adds its own options to a parser that has `--config`, `--lake` and `--verbose`
    options: Callable[[argparse.ArgumentParser], None] = lambda _parser: None
    #: does the work; a `QmfError` becomes one line and exit code 2
    run: Callable[[argparse.Namespace], None] = lambda _options: None
    spark: bool = False  #: it may run on Spark: adds `--master` and `--conf`, for `job_runner`
    lake: bool = True  #: it needs `--lake`; otherwise its own options say where its data are
    #: subcommands of its own, of which one must be given; then only name and help of this one count
    actions: tuple[Subcommand, ...] = ()


def print_line(text: str) -> None:
    """Print a line for the user at once."""
    print(text, flush=True)


def print_or_stop(stop: Callable[[], object]) -> Callable[[str], None]:
    """As `print_line`, for a job that ends in order where nobody reads on: `stop` is called instead of an error."""

    def show(text: str) -> None:
        try:
            print_line(text)
        except BrokenPipeError:
            stop()

    return show


def comma_separated(text: str) -> tuple[str, ...]:
    """The values of an option, separated by commas."""
    return tuple(item.strip() for item in text.split(",") if item.strip())


def duration(text: str) -> str:
    """A duration such as ``10s``, ``1m30s``, ``1h`` or ``10 minutes``, as Spark writes it, with one unit."""
    try:
        milliseconds, rest = divmod(parse_duration(text), 10**6)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if rest:
        raise argparse.ArgumentTypeError(f"must be a time of whole milliseconds, not {text!r}")
    return f"{milliseconds} milliseconds" if milliseconds % 1000 else f"{milliseconds // 1000} seconds"


def date(text: str) -> str:
    """A day such as ``2030-01-31``, or ``today`` or ``yesterday`` in UTC; returned in the first form."""
    if text in _DAYS_AGO:
        return (datetime.datetime.now(datetime.UTC).date() - datetime.timedelta(days=_DAYS_AGO[text])).isoformat()
    try:
        return datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a day such as 2030-01-31 or yesterday, not {text!r}") from None


def check_lake(lake: str) -> None:
    """Raise `PipelineError` for a folder that is missing or holds no lake, before anything slow starts."""
    if not is_local(lake):
        return
    root = local_path(lake)
    if not root.exists():
        raise PipelineError(f"{lake}: no such folder; a recorder makes it: qmf-pipeline record --lake {lake}")
    if not (root / kind_path(RowKind.SCHEMAS) / "_delta_log").is_dir():
        raise PipelineError(f"{lake}: not a lake: it has no table of schemas")


def open_lake(options: argparse.Namespace) -> DeltaLake:
    """The lake of a command line, whether it exists yet or not."""
    return DeltaLake(options.lake, storage_of(options))


def check_followed(lake: str) -> None:
    """Say when a lake that is to be followed cannot be read yet."""
    try:
        check_lake(lake)
    except PipelineError as error:
        print(f"qmf-pipeline: waiting: {error}", file=sys.stderr, flush=True)


def storage_of(options: argparse.Namespace) -> dict[str, str]:
    """The settings of the object store of a command line."""
    return dict(options.storage)


def add_common(parser: argparse.ArgumentParser, *, spark: bool, lake: bool = True) -> None:
    """Add the options that every subcommand has."""
    several = {"action": "append", "type": _setting, "default": []}
    text = "--config FILE  TOML file with options in tables [all] and [COMMAND]\n"
    if lake:
        text += """--lake DIR  folder or URL of the lake, e.g. s3://bucket/lake
            --storage KEY=VALUE  a setting of the object store, e.g. AWS_ENDPOINT_URL=http://127.0.0.1:9000, otherwise
                from the environment; may be repeated\n"""
    text += "-v, --verbose  log more\n"
    if spark:
        text += f"""--master URL  run on Spark, at this URL of a master; default: in this process
            --conf KEY=VALUE  run on Spark with a setting of it, e.g. spark.driver.memory=4g, without --master at
                {DEFAULT_MASTER}; may be repeated"""
    add_options(parser, text, config={"type": Path}, lake={"required": True}, storage=several, conf=several)


def add_options(parser: argparse.ArgumentParser, text: str, **more: Mapping[str, Any]) -> None:
    """Add options, each as ``-d, --duration TIME`` and two blanks before its help; those without a value are flags.

    `more` are further arguments of argparse, by the long name.
    """
    for option in re.split(r"\n\s*(?=-)", text.strip()):
        names, _, help = re.sub(r"\n\s*", " ", option).partition("  ")
        *short, long = names.split(", ")
        name, _, value = long.partition(" ")
        given: dict[str, Any] = {"metavar": value} if value else {"action": "store_true"}
        given |= more.get(name.lstrip("-").replace("-", "_"), {})
        parser.add_argument(*short, name, help=help.strip(), **given)


def add_broker(parser: argparse.ArgumentParser, purpose: str = "") -> None:
    """Add the options of a command that connects to a broker; `purpose` is the beginning of the help of `-b`."""
    add_connection_options(
        parser.add_argument_group("connecting"), broker=f"{purpose}the broker; default: {DEFAULT_URL}"
    )


def broker_target(options: argparse.Namespace) -> BrokerTarget:
    """The broker of a command line; errors are those of `read_connections`."""
    return read_connections(options, prog="qmf-pipeline", default=DEFAULT_URL).target


def add_days(parser: argparse.ArgumentParser) -> None:
    """Add `--from` and `--to`: the days of a batch, as `first` and `last`."""
    text = """
        --from DAY  first day of a batch, e.g. 2030-01-31 or yesterday
        --to DAY  last day of a batch
    """
    add_options(parser, text, **{"from": {"dest": "first", "type": date}, "to": {"dest": "last", "type": date}})


def add_stream(parser: argparse.ArgumentParser, *, every: str = "10 seconds", late: str | None = "10 minutes") -> None:
    """Add the options of streams: `stream`, `once`, `late` if it has a default, `every`."""
    text = """
        --stream  follow the lake until a signal ends it
        --once  a stream ends when it has read all that is in the lake
        --late TIME  how long a stream waits for late data
        --every TIME  time from batch to batch of a stream
    """
    text = text if late is not None else re.sub("--late.*", "", text)
    times = {name: {"type": duration, "default": default} for name, default in (("late", late), ("every", every))}
    add_options(parser, text, **times)


def add_classes(parser: argparse.ArgumentParser) -> None:
    """Add `--class`: names of classes, as `classes`."""
    more = {"dest": "classes", "type": comma_separated, "default": ()}
    add_options(parser, "--class NAMES  e.g. cpu,qmf.host:disk; default: all", **{"class": more})


def _setting(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals:
        raise argparse.ArgumentTypeError(f"must be KEY=VALUE, not {text!r}")
    return key.strip(), value.strip()


_ALL = "all"

_SPARK = "spark"


def parse_options(
    parser: argparse.ArgumentParser, commands: Mapping[str, argparse.ArgumentParser], arguments: Sequence[str]
) -> argparse.Namespace:
    """Parse a command line, without the program's name, with defaults from the file of its `--config`.

    `parser` is that of the whole line, `commands` has one for each subcommand, see `cli.parsers`.
    """
    finder = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    finder.add_argument("--config", type=Path)
    file = finder.parse_known_args(list(arguments))[0].config
    command = commands.get(" ".join(arguments[:2])) or commands.get(" ".join(arguments[:1]))
    if file is not None and command is not None:
        _set_defaults(command, arguments[0], file, commands)
    return parser.parse_args(arguments)


def _set_defaults(
    command: argparse.ArgumentParser, name: str, file: Path, commands: Mapping[str, argparse.ArgumentParser]
) -> None:
    try:
        toml = read_toml(file, PipelineError)
        if toml is None:
            raise PipelineError(f"cannot read {file}: no such file")
        _check_tables(toml, commands)
        known = _options_by_name(command)
        tables = {_ALL: toml.content.get(_ALL, {}), name: toml.content.get(name, {})}
        for table, options in tables.items():
            for key, value in options.items():
                if table == _ALL and key in tables[name]:
                    continue
                with toml.at(table, key):
                    if key in known:
                        _set_default(known[key], key, value)
                    else:
                        _check_foreign_option(key, name, commands, own=table == name)
    except PipelineError as error:
        command.error(str(error))
    if "conf" in known:
        known["conf"].default = [(key, str(value)) for key, value in _flatten(toml.content.get(_SPARK, {}), "spark.")]


def _check_tables(toml: TomlFile, commands: Mapping[str, argparse.ArgumentParser]) -> None:
    for key, value in toml.content.items():
        with toml.at(key):
            if key not in {_ALL, _SPARK, *commands}:
                raise PipelineError(f"there is no subcommand {key!r}")
            if not isinstance(value, dict):
                raise PipelineError(f"{key} must be a table")


def _check_foreign_option(key: str, name: str, commands: Mapping[str, argparse.ArgumentParser], *, own: bool) -> None:
    """Check an option that the command `name` does not have: others must have it, in its own table its subcommands."""
    having = [full for full, other in commands.items() if key in _options_by_name(other)]
    if own and not any(full.startswith(f"{name} ") for full in having):
        raise PipelineError(f"{name} has no option {key!r}")
    if not having:
        raise PipelineError(f"no command has an option {key!r}")


def _options_by_name(command: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """The options of a command by their names."""
    return {option[2:]: action for action in command._actions for option in action.option_strings}


def _set_default(action: argparse.Action, key: str, value: object) -> None:
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise PipelineError(f"{key}: must be true or false")
        action.default = value
        return
    text = ",".join(str(item) for item in value) if isinstance(value, list) else str(value)
    if callable(action.type):
        try:
            action.default = action.type(text)
        except (ValueError, argparse.ArgumentTypeError) as error:
            raise PipelineError(f"{key}: {error}") from None
    else:
        action.default = text
    action.required = False


def _flatten(table: Mapping[str, Any], prefix: str) -> list[tuple[str, object]]:
    """Nested tables as dotted names: TOML reads `a.b = 1` as a table in a table."""
    found: list[tuple[str, object]] = []
    for key, value in table.items():
        name = f"{prefix}{key}"
        found += _flatten(value, f"{name}.") if isinstance(value, dict) else [(name, value)]
    return found
