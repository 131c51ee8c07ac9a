"""For benchmarks: a session of the shell that is asked what Tab offers.

    python bench/completion_process.py URL

Prints "ready" when it has connected. Then each line of its input is what somebody has typed; it answers with the number
of offers, as soon as there is one. Ends with its input.
"""

from __future__ import annotations

import sys
import threading

from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from qmf_shell.commands import standard
from qmf_shell.completion.completer import LineCompleter
from qmf_shell.session.name_cache import NameRefresher
from qmf_shell.session.opening import open_session
from qmf_shell.settings import ShellSettings

from qmf.connecting import BrokerTarget


def serve(url: str) -> None:
    """Answer until the input ends."""
    registry, settings = standard(), ShellSettings()
    targets = [BrokerTarget.of(url)]
    with open_session(targets, timeout=60, interval=10, follow=True, registry=registry, settings=settings) as opened:
        changed = threading.Event()
        refresher = NameRefresher(opened.context.backend)
        refresher.on_change(changed.set)
        completer = LineCompleter(opened.context, refresher)
        refresher.start()
        print("ready", flush=True)
        for line in sys.stdin:
            text = line.rstrip("\n")
            while not (offers := list(completer.get_completions(Document(text), CompleteEvent()))):
                completer.prepare(text)
                changed.wait(1.0)
                changed.clear()
            print(len(offers), flush=True)
        refresher.close()


if __name__ == "__main__":
    serve(sys.argv[1])
