"""How a broker was started, as its management shows it."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from qmf.broker.connection_limits import ConnectionLimits
from qmf.broker.nodes.observed_clients import LastingSession

if TYPE_CHECKING:
    from qmf.broker.access.control import FileAccessControl


@attrs.frozen
class BrokerSetup:
    """Options of a broker.

    Attributes:
        system_id: of the machine, as far as the broker knows it.
        tag: by which other brokers know the broker.
        listening: host and port of the listening socket, as in a URL.
        port, backlog: of the same.
        connection_limits: numbers of clients at the same time.
        interval: seconds between publications.
        publishes: changes are published; otherwise consoles have to query.
        data_dir: its data folder, or None.
        access: its access control, or None.
        revokes: connections and links may end for lack of a right.
        mqtt_sessions: of earlier runs; None without MQTT.
        certificate: returns its certificate as DER; None without TLS, or where it is not known.
    """

    system_id: uuid.UUID
    tag: str
    listening: str
    port: int
    backlog: int
    connection_limits: ConnectionLimits
    interval: float
    publishes: bool
    data_dir: Path | None = None
    access: FileAccessControl | None = None
    certificate: Callable[[], bytes] | None = None
    revokes: bool = False
    mqtt_sessions: Sequence[LastingSession] | None = None
