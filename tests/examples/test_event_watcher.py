"""The event watcher ends without a traceback, even if Ctrl-C is pressed twice."""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import pytest
from support.processes import Process

from qmf.broker import EmbeddedBroker

pytestmark = pytest.mark.slow

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
#: The program, with a second Ctrl-C while it closes.
IMPATIENT = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
import event_watcher
close = event_watcher.Session.close

def impatient(session):
    os.kill(os.getpid(), signal.SIGINT)
    close(session)
    print("closed", flush=True)

event_watcher.Session.close = impatient
sys.exit(event_watcher.main([sys.argv[2]]))
"""


def test_ctrl_c_twice() -> None:
    with EmbeddedBroker() as broker:
        process = Process(sys.executable, "-c", IMPATIENT, str(EXAMPLES), broker.url)
        process.wait_for("connected to")
        process.popen.send_signal(signal.SIGINT)
        process.wait_for("closed")
        assert process.end(signal.SIGINT) == 0
        assert "Traceback" not in "".join(process.lines)
