"""Who an agent is: its name, and the number of its start (QMF2.md 4.2).

The epoch tells consoles that an agent was restarted and that ids of its earlier objects are void. It has to differ from
start to start:

* with a state directory, starts are counted in a file there;
* without one, it is the time of the start, in seconds since 1970, as a 32-bit number: it needs no memory, differs when
  starts are a second apart, and fits the field that C++ consoles read it into.

A state directory belongs to one agent at a time.
"""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote
from uuid import uuid4

import attrs

from qmf.errors import CallerError
from qmf.protocol.values import AgentInfo

_log = logging.getLogger("qmf.agent")

#: Longest name in UTF-8. Routing keys over 255 bytes are cut by AMQP 0-10 brokers (QMF2.md 1.1), and the longest prefix
#: of a key without class names is ``agent.ind.heartbeat.``.
MAX_NAME = 255 - len("agent.ind.heartbeat.")

_EPOCH_MAX = (1 << 32) - 1


@attrs.frozen(kw_only=True)
class Identity:
    """Who an agent is, from start to end.

    Attributes:
        vendor, product, instance: parts of the name.
        epoch: number of the start, from 1.
        direct_subject: key on the topic exchange that reaches this run of the agent, too.
        interval: seconds between heartbeats.
        attributes: what the application adds.
    """

    vendor: str
    product: str
    instance: str
    epoch: int
    interval: float
    direct_subject: str = attrs.field(factory=lambda: f"direct-agent.route.{uuid4()}")
    attributes: Mapping[str, object] = attrs.field(factory=dict)

    @property
    def name(self) -> str:
        """``vendor:product:instance``."""
        return f"{self.vendor}:{self.product}:{self.instance}"

    def info(self, now: int, schema_updated: int) -> AgentInfo:
        """What the agent says of itself at time `now` (ns since 1970)."""
        return AgentInfo(
            name=self.name,
            vendor=self.vendor,
            product=self.product,
            instance=self.instance,
            epoch=self.epoch,
            heartbeat_interval=self.interval,
            timestamp=now,
            schema_updated=schema_updated,
            capability=1,
            direct_subject=self.direct_subject,
            attributes=self.attributes,
        )


def make_identity(
    *,
    vendor: str,
    product: str,
    instance: str | None,
    interval: float,
    attributes: Mapping[str, object],
    state_dir: Path | None,
    epoch: int | None,
    now: int,
) -> Identity:
    """Find out who an agent is at this start.

    Args:
        vendor, product: fixed parts of the name; not empty, without ``:``, at which consoles split.
        instance: tells agents of one product apart. None: kept in the state directory, else a new uuid.
        interval: seconds between heartbeats.
        attributes: what the application adds.
        state_dir: where starts are counted; made when it is not there.
        epoch: use this instead of counting.
        now: time of the start, ns since 1970.

    Raises:
        CallerError: a part of the name is invalid, or the state directory cannot be written.
    """
    for what, part in (("vendor", vendor), ("product", product)):
        if not part or ":" in part:
            raise CallerError(f"the {what} of an agent must not be empty or contain ':', not {part!r}")
    if instance == "":
        raise CallerError("the instance of an agent must not be empty")
    if epoch is not None and not 1 <= epoch <= _EPOCH_MAX:
        raise CallerError(f"the epoch of an agent must be 1 to {_EPOCH_MAX}, not {epoch}")
    if state_dir is not None:
        instance, counted = _count_start(state_dir, vendor, product, instance, now)
        epoch = epoch or counted
    identity = Identity(
        vendor=vendor,
        product=product,
        instance=instance or str(uuid4()),
        epoch=epoch or _time_epoch(now),
        interval=interval,
        attributes=dict(attributes),
    )
    if len(identity.name.encode()) > MAX_NAME:
        raise CallerError(f"the name of an agent must have at most {MAX_NAME} bytes: {identity.name}")
    return identity


def _time_epoch(now: int) -> int:
    return (now // 1_000_000_000) & _EPOCH_MAX or 1


def _count_start(folder: Path, vendor: str, product: str, instance: str | None, now: int) -> tuple[str, int]:
    """Instance and epoch of this start; the file is replaced in one step, so that a crash leaves the old or the new."""
    names = (vendor, product) if instance is None else (vendor, product, instance)
    path = folder / (",".join(quote(name, safe="") for name in names) + ".json")
    kept, epoch = _read_state(path, now)
    instance = instance or kept or str(uuid4())
    epoch = epoch % _EPOCH_MAX + 1
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".start-", delete=False, encoding="utf-8") as file:
            json.dump({"instance": instance, "epoch": epoch}, file)
            file.flush()
            os.fsync(file.fileno())
        Path(file.name).replace(path)
    except OSError as error:
        raise CallerError(f"cannot count the start of the agent in {path}: {error.strerror}") from error
    return instance, epoch


def _read_state(path: Path, now: int) -> tuple[str | None, int]:
    """Instance and epoch of the last start, or None and 0."""
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        instance, epoch = state["instance"], state["epoch"]
        if isinstance(instance, str) and isinstance(epoch, int) and 0 <= epoch <= _EPOCH_MAX:
            return instance, epoch
    except FileNotFoundError:
        return None, 0
    except OSError as error:
        raise CallerError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, KeyError, TypeError):
        pass
    # A program shall start even so; the time is beyond any count of starts, so the epoch still differs.
    _log.warning("%s is damaged; counting starts from the time", path)
    return None, _time_epoch(now)
