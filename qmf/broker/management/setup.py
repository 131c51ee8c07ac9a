"""How a broker was started, as its management shows it."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import attrs

from qmf._atomic_files import PRIVATE, replace_file
from qmf.broker.connection_limits import ConnectionLimits
from qmf.broker.store.folder import SYSTEM_ID

if TYPE_CHECKING:
    from qmf.broker.access.control import FileAccessControl

log = logging.getLogger("qmf.broker")


@attrs.frozen
class BrokerSetup:
    """Options of a broker.

    Attributes:
        listening: host and port of the listening socket, as in a URL.
        port, backlog: of the same.
        connection_limits: numbers of clients at the same time.
        interval: seconds between publications.
        publishes: changes are published; otherwise consoles have to query.
        data_dir: its data folder, or None.
        access: its access control, or None.
        revokes: connections and links may end for lack of a right.
        certificate: returns its certificate as DER; None without TLS, or where it is not known.
    """

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
