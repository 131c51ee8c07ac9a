"""`qpid-config`: shows and changes the queues, exchanges and bindings of a broker."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

from qmf.client import BrokerAgent
from qmf.client.objects import is_own
from qmf.errors import NotFoundError
from qmf.tools.config import listings
from qmf.tools.config.changes import Changes
from qmf.tools.config.completion import candidates, completion_script
from qmf.tools.config.listings import as_json, values_of, with_bindings
from qmf.tools.config.options import CLASSES, parse
from qmf.tools.connecting import FAILED, OK, access_of, open_broker, run_tool


def main(argv: Sequence[str] | None = None) -> int:
    """Run the tool; `argv`: arguments without the program's name; None means those of the process.

    Returns:
        0 for success; 1 if the broker cannot be reached or refuses, or a listing finds nothing; 130 after Ctrl-C.
        Wrong usage ends the program with 2.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    if words[:1] == ["--complete"]:
        return run_tool(lambda: _print(candidates(words[1:])))
    options = parse(words)
    if options.completion:
        return run_tool(lambda: _print([completion_script(options.completion)]))
    return run_tool(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    with open_broker(access_of(options), options.timeout) as broker:
        words = options.words
        match words[0] if words else None:
            case None:
                own = options.all
                if options.json:
                    return _print([as_json(listings.overview_counts(broker, own=own))])
                return _print(listings.overview(broker, own=own))
            case "exchanges":
                return _list_exchanges(broker, options)
            case "queues":
                return _list_queues(broker, options)
            case "list":
                return _list_objects(broker, options)
            case "log" if len(words) == 1:
                level = broker.getLogLevel()
                return _print([as_json(level) if options.json else f"Log level: {level.get('level')}"])
            case _:
                _change(Changes(broker, options), options)
                return OK


def _change(changes: Changes, options: argparse.Namespace) -> None:
    command, words = options.words[0], options.words[1:]
    match command:
        case "add" | "del":
            if not words:
                options.usage_error(f"{command} needs a type: queue, exchange, or another one that the broker knows")
            (changes.add if command == "add" else changes.delete)(words[0], words[1:])
        case "bind":
            changes.bind(words)
        case "unbind":
            changes.unbind(words)
        case "reload-acl":
            changes.reload_acl()
        case "log":
            changes.log(words[0])
        case _:
            changes.shutdown()


def _list_exchanges(broker: BrokerAgent, options: argparse.Namespace) -> int:
    exchanges = listings.selected_exchanges(broker, _wanted_name(options), ignore_default=options.ignore_default)
    if not exchanges:
        return _nothing(options)
    bindings = broker.getAllBindings() if options.recursive else []
    bindings = [item for item in bindings if options.all or not item.is_own]
    if options.json:
        return _print([as_json(_nodes(exchanges, bindings, options))])
    if options.recursive:
        return _print(listings.exchange_bindings(exchanges, bindings))
    return _print(listings.exchange_list(exchanges))


def _list_queues(broker: BrokerAgent, options: argparse.Namespace) -> int:
    queues, hidden = listings.selected_queues(broker, _wanted_name(options), own=options.all)
    if hidden and sys.stderr.isatty():  # scripts that read the listing need no such remark
        print(f"{hidden:,} of agents, consoles and tools not shown (--all)", file=sys.stderr)
    if not queues:
        return _nothing(options)
    bindings = broker.getAllBindings() if options.recursive else []
    if options.json:
        return _print([as_json(_nodes(queues, bindings, options))])
    if options.recursive:
        return _print(listings.queue_bindings(queues, bindings, ignore_default=options.ignore_default))
    return _print(listings.queue_list(queues))


def _wanted_name(options: argparse.Namespace) -> str:
    """The text behind ``exchanges`` or ``queues`` that selects some."""
    return options.words[1] if len(options.words) > 1 else ""


def _nodes(items: Sequence[object], bindings: Sequence[object], options: argparse.Namespace) -> list[dict[str, object]]:
    found = with_bindings(items, bindings)  # type: ignore[arg-type]
    return found if options.recursive else [{n: v for n, v in item.items() if n != "bindings"} for item in found]


def _nothing(options: argparse.Namespace) -> int:
    if options.json:
        print("[]")
    return FAILED


def _list_objects(broker: BrokerAgent, options: argparse.Namespace) -> int:
    if len(options.words) != 2:
        options.usage_error("list needs a type, such as queue or connection")
    class_name = options.words[1]
    objects = broker.list(class_name)
    if not objects and class_name.lower() not in CLASSES:
        raise NotFoundError("class", class_name, CLASSES)
    objects = [item for item in objects if options.all or not is_own(item)]
    wanted = options.properties
    if objects:
        for name in sorted(set(wanted).difference(listings.known_properties(objects)), key=wanted.index):
            print(f"Warning: No such property '{name}' for type '{class_name}'", file=sys.stderr)
    if options.json:
        found = map(values_of, objects)
        return _print([as_json([{n: v for n, v in item.items() if not wanted or n in wanted} for item in found])])
    return _print(listings.object_table(class_name, objects, wanted))


def _print(lines: Iterable[str]) -> int:
    for line in lines:
        print(line)
    return OK
