"""The id of a broker and its machine, which is in the data folder."""

from __future__ import annotations

import logging
import uuid
from pathlib import Path

from qmf._atomic_files import PRIVATE, replace_file
from qmf.broker.store.folder import SYSTEM_ID

log = logging.getLogger("qmf.broker")


def stored_id(data_dir: Path) -> uuid.UUID:
    """The id in a data folder, which gets one where it has none."""
    made = uuid.uuid4()
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
        log.warning("%s cannot be written: the broker has another id after a restart: %s", path, error)
    return made
