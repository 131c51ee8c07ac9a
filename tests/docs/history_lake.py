"""The lake of docs/history.md: half an hour of an invented broker's queues, always the same."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

from pipeline.lakes import Shop

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.schema import TYPES, Access, Argument, ClassSchema, EventSchema, Property, Schema, Severity, Statistic, to_xml

PACKAGE = "org.example.broker"
#: 2025-11-22 13:50 UTC
BEGIN = 1_763_819_400
AGENT = "example.org:broker:mq1"
STEP = 10

QUEUE = ClassSchema(
    package=PACKAGE,
    name="queue",
    hash=UUID(int=0x51),
    desc="A queue of messages",
    properties=(Property(name="name", type=TYPES["sstr"], access=Access.RC, index=True, desc="Name of the queue"),),
    statistics=(
        Statistic(name="msgDepth", type=TYPES["uint32"], unit="message", desc="Messages that wait"),
        Statistic(name="consumers", type=TYPES["uint32"], desc="Consumers"),
        Statistic(name="msgTotalEnqueues", type=TYPES["count64"], unit="message", desc="Messages received"),
    ),
)
UNSUBSCRIBED = EventSchema(
    package=PACKAGE,
    name="unsubscribe",
    severity=Severity.WARN,
    hash=UUID(int=0x52),
    arguments=(Argument(name="queue", type=TYPES["sstr"]), Argument(name="user", type=TYPES["sstr"])),
)


def make(root: Path) -> None:
    """Write the lake.

    At 14:02 the consumer of `orders` goes, and comes back at 14:08; at 14:05 `returns` is deleted; at 14:10 the agent
    is restarted.
    """
    shop = Shop(root, run=f"{BEGIN * 10**9:020d}_1", name="recorder")
    queue, event = ClassVersion.from_schema(QUEUE), ClassVersion.from_schema(UNSUBSCRIBED)
    shop.add_schema(queue, to_xml(Schema(package=PACKAGE, classes=(QUEUE,), events=())))
    shop.add_schema(event, to_xml(Schema(package=PACKAGE, classes=(), events=(UNSUBSCRIBED,))))
    shop.agent(BEGIN, "added", agent=AGENT)
    for step in range(30 * 60 // STEP):
        at = BEGIN + STEP * step
        epoch = 1 if at < BEGIN + 1200 else 2
        if at == BEGIN + 1200:
            shop.agent(at, "restarted", agent=AGENT, epoch=2)
        shop.add(RowKind.HEARTBEATS, at, (10.0, None, 1, None, None), agent=AGENT, epoch=epoch)
        for name, depth, consumers, total in _queues(step):
            ended = at if name == "returns" and step == 90 else 0
            own = (f"{PACKAGE}:queue:{name}", 0, BEGIN * 10**9, ended * 10**9, step % 120 == 0, True)
            shop.add(RowKind.OBJECTS, at, (*own, name, depth, consumers, total), table=queue, agent=AGENT, epoch=epoch)
    shop.commit()
    shop.events((BEGIN + 720, {"queue": "orders", "user": "billing"}), table=event, severity=4, agent=AGENT)


def _queues(step: int) -> list[tuple[str, int, int, int]]:
    """Name, depth, consumers and total of each queue at a step."""
    alone = min(max(step - 72, 0), 36)  # steps without a consumer
    worked = max(step - 108, 0)
    depth = max(0, alone * 40 - worked * 60) + step % 3
    total = step * 40 if step < 120 else (step - 120) * 40
    found = [("invoices", 3, 1, step * 5 if step < 120 else (step - 120) * 5)]
    found.append(("orders", depth, 0 if 72 <= step < 108 else 2, total))
    if step <= 90:
        found.append(("returns", 0, 1, step))
    return found
