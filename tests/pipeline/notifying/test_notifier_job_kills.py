"""A job that is killed at random moments: nobody misses an alert, and only what was under way is told again."""

from __future__ import annotations

import random
import signal
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from pipeline.notifying.servers import http_server
from support.processes import running
from support.waiting import WAIT_LIMIT

pytestmark = [pytest.mark.slow, pytest.mark.soak]

STEPS = 150

PROGRAM = f"""
import sys, threading, time
from pathlib import Path
from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.notifying.config_file import parse_config
from qmf.pipeline.notifying.notifier import Notifier

folder, url = sys.argv[1:]
config = parse_config('''
route = {{receiver = "ops", group_by = "...", group_wait = 0, group_interval = 0}}
receiver = [{{name = "ops", webhook = {{url = "URL"}}}}]
'''.replace("URL", url))
notifier = Notifier(Path(folder), config, lambda item: item.settings.make_sender(), print)
print("started", flush=True)

def alert(number, ends):
    labels = {{"alertname": "full", "object": str(number)}}
    return Alert(id=str(number), incident=str(number), labels=labels, starts_ns=number, ends_ns=ends)

for step in range(notifier.step + 1, {STEPS} + 1):
    ended = [alert(step - 3, time.time_ns())] if step > 3 else []
    notifier.take([alert(step, None), *ended], step)
    time.sleep(0.01)
assert notifier.drain(threading.Event(), {WAIT_LIMIT})
notifier.close()
print("done", flush=True)
"""


def test_a_killed_job_neither_forgets_nor_repeats(tmp_path: Path) -> None:
    chance = random.Random(random.randrange(1000))  # pytest-randomly prints the seed
    kills = 0
    with http_server() as log:
        job = [sys.executable, "-c", PROGRAM, str(tmp_path / "state"), log.url]
        for _ in range(8):
            with running(*job) as process:
                process.wait_for("started")
                threading.Event().wait(chance.uniform(0, 0.4))  # so that the kill comes at any point of its work
                process.end(signal.SIGKILL)
                kills += 1
        with running(*job) as process:
            process.wait_for("done")
        told: Counter[tuple[str, str]] = Counter()
        state: dict[str, str] = {}
        for content in log.accepted:
            for one in content["alerts"]:
                told[one["labels"]["object"], one["status"]] += 1
                state[one["labels"]["object"]] = one["status"]
    assert set(state) == {str(number) for number in range(1, STEPS + 1)}
    firing = {name for name, status in state.items() if status == "firing"}
    assert firing == {str(number) for number in range(STEPS - 2, STEPS + 1)}
    assert sum(told.values()) - len(told) <= kills
