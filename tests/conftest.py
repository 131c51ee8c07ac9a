"""What all rooms' tests share."""

from __future__ import annotations

import importlib.util
import os
import signal

# A shell that runs the suite in the background has Ctrl-C ignored, and programs that tests start would inherit that:
# their own Ctrl-C would do nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> list[str]:
    """Which peers the tests run with, named by environment variables, and whether the pipeline's are in."""
    qpidd = os.environ.get("QMF_TEST_QPIDD")
    foreign = [f"qpidd at {qpidd}" if qpidd else "no qpidd (QMF_TEST_QPIDD)"]
    foreign.append(
        "libqmf2 on both of its client protocols"
        if qpidd and os.environ.get("QMF_TEST_LIBQMF2")
        else "no libqmf2 (QMF_TEST_LIBQMF2)"
    )
    spark = all(importlib.util.find_spec(name) for name in ("pyarrow", "pyspark"))
    return [
        "pipeline: tested on Spark"
        if spark
        else "pipeline: left out, its extra is not installed: pip install '.[dev]'",
        f"peers: embedded broker, our agents, captured messages; {'; '.join(foreign)}",
    ]
