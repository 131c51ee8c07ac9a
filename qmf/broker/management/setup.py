"""How a broker was started, as its management shows it."""

from __future__ import annotations

import logging
import uuid
from pathlib import Path

import attrs

from qmf._atomic_files import PRIVATE, replace_file
from qmf.broker.store.folder import SYSTEM_ID

log = logging.getLogger("qmf.broker")


@attrs.frozen
class BrokerSetup:
    """Options of a broker.

    Attributes:
        listening: host and port of the listening socket, as in a URL.
        port, backlog: of the same.
        max_connections: limit of connections; 0 for none.
        interval: seconds between publications.
        publishes: changes are published; otherwise consoles have to query.
        data_dir: its data folder, or None.
    """

    listening: str
    port: int
    backlog: int
    max_connections: int
    interval: float
    publishes: bool
    data_dir: Path | None = None


def machine_id(data_dir: Path | None) -> uuid.UUID:
    """The id of the machine: that in the data folder, which gets one where it has none; without a folder a new one."""
    made = uuid.uuid4()
    if data_dir is None:
        return made
    path = data_dir / SYSTEM_ID
    try:
        return uuid.UUID(path.read_text("ascii").strip())
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        log.warning("%s is replaced: %s", path, error)
    try:
        replace_file(path, f"{made}\n".encode(), mode=PRIVATE)
    except OSError as error:
        log.warning("%s cannot be written: the machine has another id after a restart: %s", path, error)
    return made
