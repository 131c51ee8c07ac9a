"""The spool of a stream over a bus: a recorder runs beside the query, so that the query can read its input again."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from concurrent.futures import Future

from qmf._event_loop import new_event_loop
from qmf.console.aio import BusConnected, Client, Notification
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.record.lake_recorder import LakeRecorder
from qmf.pipeline.record.quiet_tables import QuietTables

#: Seconds between commits of a spool.
INTERVAL = 1.0

#: The writer's name of a spool's recorder.
WRITER = "spool"


class Spool:
    """A recorder in a background thread."""

    def __init__(self, url: str, root: str, options: Mapping[str, str]) -> None:
        """Connect and record.

        Raises:
            ConnectError, LakeError: as of `LakeRecorder.run`.
        """
        self._ready: Future[None] = Future()
        self._loop = new_event_loop()
        client = Client(url, domain=options.get("domain", "default"), discover=True)
        interval = float(options.get("interval", INTERVAL))
        client.listen(self._on_notification)
        self._recorder = LakeRecorder(client, DeltaLake(root), name=WRITER, interval=interval, quiet=QuietTables(0))
        self._thread = threading.Thread(target=self._main, name="qmf-spool", daemon=True)
        self._thread.start()
        self._ready.result()

    def close(self) -> None:
        """Commit the rows that wait, and end."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._recorder.stop)
            self._thread.join()

    def _on_notification(self, notification: Notification) -> None:
        if isinstance(notification, BusConnected) and not self._ready.done():
            self._ready.set_result(None)

    def _main(self) -> None:
        try:
            self._run()
        except Exception as error:  # noqa: BLE001 - raised in the thread that waits for the start
            if not self._ready.done():
                self._ready.set_exception(error)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._recorder.run())
        finally:
            self._loop.close()
