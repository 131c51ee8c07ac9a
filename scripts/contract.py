"""Run the contract suites of bus, messaging and console on each broker, and print a table of the results.

The brokers are the embedded one, and those that QMF_TEST_QPIDD, QMF_TEST_ARTEMIS and QMF_TEST_RABBITMQ name;
scripts.brokers starts the latter two. The exit code is 1 if a test failed.
"""

from __future__ import annotations

import collections
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

#: The tests of each suite; a parameter of a test is the broker's name.
SUITES = {
    "bus": ["tests/bus/test_base_conformance.py"],
    "messaging": [
        "tests/messaging/contract",
        "tests/messaging/core/test_connection_core_security.py",
        "tests/examples/test_drain_and_spout.py",
    ],
    "console": ["tests/interop/test_brokers.py"],
    "federation": [
        "tests/broker/federation/test_peer_nodes_brokers.py",
        "tests/broker/federation/test_peer_nodes_pages.py",
    ],
    "web": ["tests/web/messages/test_messages_contract.py"],
}
BROKERS = ("embedded", "artemis", "rabbitmq", "qpidd")
#: Parameters that stand for no broker.
IN_MEMORY = ("memory", "local")

Counts = collections.Counter[str]


def main() -> int:
    """Run the suites; returns the exit code."""
    results: dict[tuple[str, str], Counts] = collections.defaultdict(collections.Counter)
    code = 0
    for suite, paths in SUITES.items():
        print(f"contract of the {suite}", flush=True)
        with tempfile.TemporaryDirectory(prefix="qmf-contract-") as folder:
            report = Path(folder) / "report.xml"
            command = [sys.executable, "-m", "pytest", "-q", "-rfE", "-m", "not soak", f"--junit-xml={report}", *paths]
            done = subprocess.run(command, check=False)
            code = code or min(done.returncode, 1)
            if report.exists():
                for broker, outcome in outcomes(report):
                    results[broker, suite][outcome] += 1
    print_table(results)
    return code


def outcomes(report: Path) -> Iterator[tuple[str, str]]:
    """Broker and outcome of each test; without a parameter that names a broker it is the embedded one."""
    for case in ElementTree.parse(report).iter("testcase"):
        parameters = re.findall(r"\[(.*)\]", case.get("name", ""))
        values = parameters[0].split("-") if parameters else []
        if not any(value in IN_MEMORY for value in values):
            kinds = {child.tag for child in case}
            outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            yield next((value for value in values if value in BROKERS), BROKERS[0]), outcome


def print_table(results: dict[tuple[str, str], Counts]) -> None:
    """A line for each broker: passed, failed and skipped tests of each suite, or why there are none."""
    width = 26
    print("\npassed / failed / skipped")
    print("broker".ljust(12) + "".join(suite.ljust(width) for suite in SUITES).rstrip())
    for broker in BROKERS:
        cells = []
        for suite in SUITES:
            counts = results.get((broker, suite), collections.Counter())
            cells.append(" / ".join(str(counts[kind]) for kind in ("passed", "failed", "skipped")))
        variable = f"QMF_TEST_{broker.upper()}"
        if broker != "embedded" and not os.environ.get(variable):
            cells = [os.environ.get(f"{variable}_MISSING") or f"{variable} names none"]
            cells[0] = f"not available: {cells[0]}"
        print(broker.ljust(12) + "".join(cell.ljust(width) for cell in cells).rstrip(), flush=True)


if __name__ == "__main__":
    sys.exit(main())
