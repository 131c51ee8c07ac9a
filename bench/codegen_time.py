"""How long it takes to generate the package of broker.xml, beside what Python takes to compile the same text.

Compiling is the comparison, because generated code is also compiled, on the same machine. Run it as
``python bench/codegen_time.py [--json FILE] [--rounds N]``; it ends with 1 when generating takes longer than `LIMIT`
seconds.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from figures import Figure, parser, report
from qmf_codegen import generate

SCHEMA = Path(__file__).resolve().parents[1] / "schemas" / "broker.xml"

#: Seconds that a generation may take.
LIMIT = 1.0


def main() -> int:
    """Measure, report, and say whether it was quick enough."""
    options = parser("Time the generation of broker.xml.")
    options.add_argument("--rounds", type=int, default=7, metavar="N", help="how often (default: %(default)s)")
    arguments = options.parse_args()
    first = _seconds(lambda: generate([SCHEMA]))
    files = generate([SCHEMA])
    generating = [_seconds(lambda: generate([SCHEMA])) for _ in range(arguments.rounds)]
    compiling = statistics.median(
        _seconds(lambda: [compile(file.text, str(file.path), "exec") for file in files])
        for _ in range(arguments.rounds)
    )
    lines = sum(file.text.count("\n") for file in files)
    peer = f"compiling the {lines:,} lines"
    figures = [
        Figure(f"generate {SCHEMA.name}, first time", first, "s", peer, compiling, limit=LIMIT),
        Figure(f"generate {SCHEMA.name}", statistics.median(generating), "s", peer, compiling, limit=LIMIT),
    ]
    report(figures, arguments.json)
    return 0 if max(first, *generating) < LIMIT else 1


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
