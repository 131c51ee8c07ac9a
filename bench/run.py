"""Run all benchmarks, one after the other, and put their figures into one table and one JSON file.

Each program runs by itself, too, with options of its own. Peers that the environment names join (see processes.py).

    python bench/run.py [--json FILE] [--quick] [NAME...]
    python bench/run.py --list
"""

from __future__ import annotations

import ast
import contextlib
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import attrs
from figures import Figure, load, note, parser, save, table
from processes import has_libqmf2, qpidd, versions

_HERE = Path(__file__).resolve().parent


@attrs.frozen
class Program:
    """A benchmark.

    Attributes:
        name: its file, without ``.py``.
        quick: options that make it short, for a look.
    """

    name: str
    quick: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The first line of its docstring."""
        text = ast.get_docstring(ast.parse((_HERE / f"{self.name}.py").read_text(encoding="utf-8"))) or ""
        return text.partition("\n")[0]


PROGRAMS = (
    Program("codec"),
    Program("compiled_functions", ("--rounds", "1")),
    Program("get_objects", ("--objects", "100", "1000", "--rounds", "3")),
    Program("events_rate", ("--events", "5000", "--objects", "1000", "--rounds", "2")),
    Program("calls", ("--calls", "200", "--rounds", "2")),
    Program("bus_rate", ("--rounds", "1")),
    Program("engine_messages", ("--rounds", "20")),
    Program("broker_core", ("--messages", "2000")),
    Program("broker_transient", ("--rounds", "1", "--part", "50")),
    Program("broker_access", ("--messages", "400", "--rounds", "1")),
    Program("broker_persistent", ("--rounds", "1", "--part", "20")),
    Program("broker_connections", ("--connections", "200")),
    Program("mqtt", ("--messages", "2000", "--connections", "100", "--fan-out", "50", "--rounds", "1")),
    Program("stomp_messages", ("--messages", "1000", "--connections", "100", "--rounds", "1")),
    Program("broker_returns", ("--agents", "100")),
    Program("federation", ("--messages", "5000", "--durable", "1000", "--hops", "50", "--rounds", "1")),
    Program("federation_links", ("--links", "20", "--messages", "2000", "--cuts", "1", "--seconds", "2")),
    Program("broker_bindings", ("--bindings", "10", "1000", "--messages", "1000", "--rounds", "1")),
    Program("broker_start", ("--messages", "10000", "--rounds", "1")),
    Program("messaging_send", ("--rounds", "1")),
    Program("messaging_receive", ("--rounds", "1")),
    Program("messaging_requests", ("--rounds", "1")),
    Program("messaging_turns", ("--rounds", "1")),
    Program("messaging_transactions", ("--rounds", "1")),
    Program("messaging_memory", ("--messages", "20000")),
    Program("scale", ("--factor", "0.05")),
    Program("first_rows", ("--objects", "2000", "--agents", "20")),
    Program("follow_delay", ("--consoles", "10", "--objects", "100", "--seconds", "3")),
    Program("accessors"),
    Program("agent_publish", ("--objects", "1000")),
    Program("agent_idle"),
    Program("management_idle"),
    Program("agent_memory", ("--objects", "500")),
    Program("console_memory", ("--objects", "1000")),
    Program("codegen_time", ("--rounds", "3")),
    Program("import_time"),
    Program("web_objects", ("--objects", "500", "--rounds", "1")),
    Program("web_metrics", ("--objects", "1000", "--rounds", "1")),
    Program("web_streams", ("--streams", "50", "--events", "50")),
    Program("web_table", ("--objects", "2000")),
    Program("web_pulls", ("--messages", "200", "--rounds", "1")),
    Program("shell_prompt"),
    Program("shell_completion"),
    Program("shell_objects", ("--objects", "1000", "--runs", "1")),
    Program("shell_screen", ("--objects", "1000", "--seconds", "2")),
    Program("web_pages", ("--objects", "500", "--browsers", "3", "--rounds", "1", "--rest", "1")),
)


def run(program: Program, *, quick: bool) -> list[Figure]:
    """Run one; its table goes to standard output as it ends.

    Raises:
        subprocess.CalledProcessError: it failed, and gave no figures.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "figures.json"
        command = [sys.executable, str(_HERE / f"{program.name}.py"), "--json", str(file)]
        done = subprocess.run([*command, *(program.quick if quick else ())], check=False)
        if not file.exists():
            raise subprocess.CalledProcessError(done.returncode, command)
        return load(file)


def main() -> int:
    """Run what is wanted; 1 when a program failed or, unless it was quick, a figure misses what is wanted of it."""
    options = parser("Run all benchmarks.")
    options.add_argument("names", nargs="*", metavar="NAME", help="programs to run (default: all)")
    options.add_argument("--list", action="store_true", help="say which there are")
    options.add_argument("--quick", action="store_true", help="fewer objects and rounds: to see that all work")
    arguments = options.parse_args()
    if arguments.list:
        for program in PROGRAMS:
            print(f"{program.name:24}{program.title}")
        return 0
    known = {program.name: program for program in PROGRAMS}
    unknown = [name for name in arguments.names if name not in known]
    if unknown:
        options.error(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    figures: list[Figure] = []
    failed = []
    begin = time.monotonic()
    for program in [known[name] for name in arguments.names] or PROGRAMS:
        print(f"\n{program.name}: {program.title}", flush=True)
        try:
            figures += run(program, quick=arguments.quick)
        except subprocess.CalledProcessError as error:
            failed.append(program.name)
            note(f"{program.name} failed with exit code {error.returncode}")
    peers = "libqmf2 and qpidd" if has_libqmf2() else "qpidd" if qpidd() else "none of the environment"
    print(f"\nAll together ({versions()}; peers: {peers}; {time.monotonic() - begin:.0f} s)\n")
    print(table(figures))
    missed = [figure.name.strip() for figure in figures if figure.reached is False]
    if missed:
        print(f"\nnot reached{' (quickly measured)' if arguments.quick else ''}: {'; '.join(missed)}")
    if failed:
        print(f"\nfailed: {', '.join(failed)}")
    if arguments.json is not None:
        save(figures, arguments.json)
    # Few objects and rounds say that all works, not how fast.
    return 1 if failed or (missed and not arguments.quick) else 0


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
