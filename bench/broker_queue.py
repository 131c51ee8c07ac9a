"""For benchmarks: the largest class that operators meet, the queue of a broker, generated and imported."""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from qmf_codegen import generate

from qmf.agent import ManagedObject
from qmf.agent.model.managed_object import layout_of

#: Its class `Queue` has 7 properties and 38 statistics, which are 47 values on the wire.
SCHEMA = Path(__file__).resolve().parents[1] / "schemas" / "broker.xml"


def queue_class(schema: Path = SCHEMA) -> type[ManagedObject]:
    """The class `Queue` of a broker's schema, freshly generated."""
    with tempfile.TemporaryDirectory() as folder:
        files = generate([schema])
        for file in files:
            path = Path(folder) / file.path
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text, encoding="utf-8")
        package = Path(files[0].path).parts[0]
        sys.path.insert(0, folder)
        try:
            module = importlib.import_module(f"{package}.agent")
        finally:
            sys.path.remove(folder)
    found: type[ManagedObject] = module.Queue
    return found


def change(queue: Any, number: int) -> None:
    """Change what changes when a message passes through a queue."""
    queue.msgTotalEnqueues.inc()
    queue.byteTotalEnqueues.inc(512)
    queue.msgTotalDequeues.inc()
    queue.byteTotalDequeues.inc(512)
    queue.messageLatency.sample(number)


def change_all(queue: ManagedObject, number: int) -> None:
    """Change every statistic that has an accessor, each to a number of its own."""
    for offset, field in enumerate(layout_of(type(queue)).statistics):
        if field.direct:
            continue
        accessor = getattr(queue, field.slot)
        if hasattr(accessor, "sample"):
            accessor.sample(number + offset)
        elif field.formula is None:
            accessor.set(number + offset)
