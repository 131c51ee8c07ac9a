"""How long it takes to generate the package of broker.xml, beside what Python takes to compile the same text.

Compiling is what to compare with: whoever generates code has it compiled, by the very same machine. Run it as
``python bench/codegen_time.py [--json FILE] [--rounds N]``; it ends with 1 when generating takes longer than `LIMIT`
seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

from qmf_codegen import generate

SCHEMA = Path(__file__).resolve().parents[1] / "schemas" / "broker.xml"

#: Seconds that a generation may take.
LIMIT = 1.0


def main() -> int:
    """Measure, print, and say whether it was quick enough."""
    parser = argparse.ArgumentParser(description="Time the generation of broker.xml.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures to a file, too")
    parser.add_argument(
        "--rounds", type=int, default=7, metavar="N", help="how often to measure (default: %(default)s)"
    )
    options = parser.parse_args()

    first = _seconds(lambda: generate([SCHEMA]))
    files = generate([SCHEMA])
    generating = [_seconds(lambda: generate([SCHEMA])) for _ in range(options.rounds)]
    compiling = [
        _seconds(lambda: [compile(file.text, str(file.path), "exec") for file in files]) for _ in range(options.rounds)
    ]
    figures = {
        "lines": sum(file.text.count("\n") for file in files),
        "first_s": first,
        "generate_s": statistics.median(generating),
        "compile_s": statistics.median(compiling),
        "ratio": statistics.median(generating) / statistics.median(compiling),
        "limit_s": LIMIT,
    }
    print(f"{SCHEMA.name}: {len(files)} modules, {figures['lines']} lines")
    print(f"generate, first time (templates compiled): {figures['first_s']:.3f} s")
    print(f"generate: {figures['generate_s']:.3f} s, limit {LIMIT:g} s")
    print(f"compile the result: {figures['compile_s']:.3f} s; generating takes {figures['ratio']:.1f} times as long")
    if options.json is not None:
        options.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
    return 0 if max(first, *generating) < LIMIT else 1


def _seconds(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
