"""Answers that wait for the disk: a kill must not undo what a client was told."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from qmf.broker.nodes.recorder import NotStored, Recorder
from qmf.bus.transport import AmqpTransport


@contextmanager
def answer_when_stored(
    recorder: Recorder | None, transport: AmqpTransport, on_failed: Callable[[NotStored], None]
) -> Iterator[None]:
    """What is created or deleted within is on the disk before anything more is written to the client.

    Args:
        recorder: of the broker; None for one without a store, where nothing waits.
        on_failed: called if the disk has refused it, while the client still is connected, before it learns anything.
    """
    if recorder is None:
        yield
        return
    recorder.flush()  # what others have done meanwhile
    try:
        yield
    finally:
        release = transport.hold_output()

        def on_stored(error: NotStored | None) -> None:
            try:
                if error is not None and transport.connected:
                    on_failed(error)
            finally:
                release()

        if not recorder.close_unit(on_stored):
            release()
