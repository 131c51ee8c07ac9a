"""What a client's connection sends to its broker, and accepts from it."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from qmf._version import __version__
from qmf.bus.engine.values import MAX_MESSAGE, ConnectionSettings
from qmf.bus.url import BusUrl


def connection_settings(
    url: BusUrl,
    container: str,
    *,
    mechanisms: Sequence[str] | None,
    heartbeat: float | None,
    max_message: int = MAX_MESSAGE,
    properties: Mapping[str, str | int],
) -> ConnectionSettings:
    """The settings of an engine.

    Args:
        url: of the broker, with the user to log in as.
        container: our container id.
        mechanisms: SASL mechanisms allowed; None for PLAIN with a user and ANONYMOUS without: a user never becomes
            anonymous.
        heartbeat: seconds between the heartbeats that are asked of the broker; it counts as lost after twice that.
            None: never.
        max_message: bytes of the largest message that is accepted.
        properties: of the connection, which brokers show, besides those that all clients have.
    """
    if mechanisms is None:
        mechanisms = ("ANONYMOUS",) if url.username is None else ("PLAIN",)
    return ConnectionSettings(
        container=container,
        hostname=url.host,
        idle_timeout=None if heartbeat is None else 2 * heartbeat,
        max_message=max_message,
        mechanisms=tuple(mechanisms),
        username=url.username,
        password=url.password,
        properties={**_client_properties(), **properties},
    )


def _client_properties() -> dict[str, str | int]:
    """What brokers show of a connection; the names are qpidd's."""
    return {
        "product": "qmf",
        "version": __version__,
        "qpid.client_process": Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python",
        "qpid.client_pid": os.getpid(),
        "qpid.client_ppid": os.getppid(),
    }
