"""Whole programs: interrupts during a call, and forks."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest
from messaging.scripted_peer import ScriptedPeer

INTERRUPTED = """
import sys, threading, time
from qmf.messaging import Connection

called = threading.Event()

def report_wait():
    called.wait()
    while not sys._current_frames()[threading.main_thread().ident].f_code.co_name.startswith("wait"):
        time.sleep(0.001)
    print("waiting", flush=True)

connection = Connection.establish(sys.argv[1], timeout=10)
session = connection.session()
sender, receiver = session.sender("node", timeout=10), session.receiver("node", timeout=10)
calls = {"fetch": receiver.fetch, "send": lambda: sender.send("x"), "next": session.next_receiver}
threading.Thread(target=report_wait, daemon=True).start()
called.set()
try:
    calls[sys.argv[2]]()
except KeyboardInterrupt:
    print("interrupted", connection.attached(), flush=True)
connection.close(timeout=0.1) if sys.argv[2] != "send" else connection.detach()
"""


@pytest.mark.slow
@pytest.mark.parametrize("call", ["fetch", "send", "next"])
def test_an_interrupt_ends_a_blocking_call(peer: ScriptedPeer, call: str) -> None:
    peer.silent = True
    program = subprocess.Popen([sys.executable, "-c", INTERRUPTED, peer.url, call], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    assert program.stdout.readline() == "waiting\n"
    program.send_signal(signal.SIGINT)
    output, _ = program.communicate(timeout=20)
    assert output == "interrupted True\n"
    assert program.returncode == 0


FORKED = """
import os, sys
from qmf.messaging import Connection, ConnectionClosed
connection = Connection.establish(sys.argv[1], timeout=10)
session = connection.session()
sender, receiver = session.sender("node", timeout=10), session.receiver("node", capacity=1, timeout=10)
child = os.fork()
if child == 0:
    calls = [lambda: sender.send("x"), lambda: sender.send("x", sync=False), receiver.fetch, session.acknowledge,
             lambda: session.acknowledge(sync=False), lambda: session.sender("y"), connection.session, connection.close]
    for call in calls:
        try:
            call()
        except ConnectionClosed as error:
            assert "made by another process" in str(error), error
        else:
            print("no error", flush=True)
    os._exit(0)
_, status = os.waitpid(child, 0)
sender.send("from the parent", timeout=10)
print(status, connection.attached(), flush=True)
connection.close(timeout=10)
"""


@pytest.mark.slow
def test_a_forked_process_cannot_use_the_connection(peer: ScriptedPeer) -> None:
    program = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED, peer.url],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (program.stdout, program.stderr) == ("0 True\n", "")
    assert peer.received == 1
