"""How long does Tab take with 10,000 objects known?

Asks the completer of `qmf-shell` for what it would show after each of some lines, over a session that knows 10,000
objects: half of them have a short id. The toolbar's hint is measured with it. The limit is 50 ms for the slowest line;
the peer is the plainest way to do it, a loop over all names with `str.startswith`.

    python bench/shell_completion.py [--runs N] [--json FILE]
"""

from __future__ import annotations

import functools
import statistics
import sys
import time
from collections.abc import Callable
from uuid import UUID

from figures import Figure, parser, report
from qmf_shell.commands import standard
from qmf_shell.completion.analysis import analyse
from qmf_shell.completion.data import CompletionData
from qmf_shell.completion.hints import hint_for
from qmf_shell.completion.suggestions import suggest
from qmf_shell.session.name_cache import NameSnapshot
from qmf_shell.session.short_ids import ShortIds

from qmf.schema import TYPES, Access, Argument, ClassSchema, Method, Property, Statistic
from qmf.views.objects import ObjectIdentity, ObjectKey

#: Milliseconds that each line may take.
LIMIT = 50.0
PEER = "a loop over all names"
OBJECTS = 10_000
#: Lines with what must be among the answers: short id, index, class, method, argument, value, nothing.
LINES = (
    ("show ", "101"),
    ("show 1", "101"),
    ("show queue-99", None),
    ("show queue-9999", "queue-9999"),
    ("show nothing-like-this", None),
    ("list queue ", "101"),
    ("list queue where msg", "msgDepth"),
    ("list queue where msgDepth > 10 and na", "name"),
    ("call queue-9999 pu", "purge"),
    ("call queue-9999 purge ", "request="),
    ("watch queue-123", None),
    ("setprop queue-9999 thr", "threshold="),
)

QUEUE = ClassSchema(
    package="org.example",
    name="queue",
    hash=UUID(int=1),
    properties=(
        Property(name="name", type=TYPES["sstr"], index=True),
        Property(name="threshold", type=TYPES["uint32"], access=Access.RW),
    ),
    statistics=(Statistic(name="msgDepth", type=TYPES["count64"]),),
    methods=(Method(name="purge", arguments=(Argument(name="request", type=TYPES["uint32"]),)),),
)


def make_world(count: int = OBJECTS) -> CompletionData:
    """A session that knows so many objects."""
    key = QUEUE.key
    objects = [
        ObjectIdentity(ObjectKey(f"org.example:queue:queue-{number}", "example.org:broker:1"), key, f"queue-{number}")
        for number in range(count)
    ]
    ids = ShortIds()
    for identity in objects[: count // 2]:
        ids.assign(identity)
    return CompletionData(NameSnapshot({key: QUEUE}, tuple(objects)), ids, standard())


def measure(run: Callable[[], object], runs: int) -> float:
    """The median of some runs, in seconds."""
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def answer(world: CompletionData, line: str) -> list[str]:
    """What Tab offers, and the toolbar's work besides."""
    found = [item.text for item in suggest(analyse(line, world.registry), world)]
    hint_for(line, world)
    return found


def plain(world: CompletionData, line: str) -> list[str]:
    """The peer: look at each name."""
    typed = line.rsplit(" ", 1)[1]
    return [identity.index for identity in world.snapshot.objects if identity.index.startswith(typed)]


def main() -> int:
    """Measure, print, and compare with the limit."""
    options = parser("Completion with 10,000 objects known.")
    options.add_argument("--runs", type=int, default=15, help="runs per line (%(default)s)")
    chosen = options.parse_args()
    world = make_world()
    peer = measure(lambda: plain(world, LINES[2][0]), chosen.runs) * 1e3
    figures = []
    for line, expected in LINES:
        found = answer(world, line)
        assert expected is None or expected in found, f"{line!r}: {expected} is not among {found[:5]}"
        took = measure(functools.partial(answer, world, line), chosen.runs) * 1e3
        figures.append(Figure(f"Tab after {line!r}", took, "ms", PEER, peer, limit=LIMIT))
    report(figures, chosen.json)
    return 0 if all(item.reached for item in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
