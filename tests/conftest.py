"""What all rooms' tests share."""

from __future__ import annotations

import os
import signal

# A shell that runs the suite in the background has Ctrl-C ignored, and programs that tests start would inherit that:
# their own Ctrl-C would do nothing.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_report_header() -> str:
    """Which peers the console's tests run with; the foreign ones are named by environment variables."""
    qpidd = os.environ.get("QMF_TEST_QPIDD")
    foreign = [f"qpidd at {qpidd}" if qpidd else "no qpidd (QMF_TEST_QPIDD)"]
    foreign.append(
        "libqmf2 agents on both client protocols"
        if qpidd and os.environ.get("QMF_TEST_LIBQMF2")
        else "no libqmf2 agents (QMF_TEST_LIBQMF2)"
    )
    return f"peers: embedded broker, our agents, captured messages; {'; '.join(foreign)}"
