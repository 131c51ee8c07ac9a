"""Signals end a job at any moment."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from qmf.pipeline.commands.running import stop_on_signals

#: Waits as busily as it can for the signal that another thread sends, again and again, while a third one wants the
#: interpreter as well, as an agent's does. A handler that sets the event itself is soon stuck.
BUSY = """
import signal, sys, threading
from qmf.pipeline.commands.running import stop_on_signals
def work():
    while True:
        sum(range(50))
sys.setswitchinterval(1e-5)
threading.Thread(target=work, daemon=True).start()
for number in range(1000):
    with stop_on_signals() as stop:
        main = threading.main_thread().ident
        threading.Timer(0.0005, signal.pthread_kill, (main, signal.SIGTERM)).start()
        while not stop.wait(1e-9):
            pass
print("done")
"""


def test_a_signal_sets_the_event_and_handlers_are_restored() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals() as stop:
        assert not stop.is_set()
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        assert stop.wait(10)
    assert signal.getsignal(signal.SIGTERM) is before


@pytest.mark.slow
def test_a_signal_within_a_wait_does_not_deadlock() -> None:
    done = subprocess.run([sys.executable, "-c", BUSY], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "done\n", done.stderr
