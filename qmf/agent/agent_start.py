"""The start of an agent: makes its identity, with the number of this start (QMF2.md 4.2).

From the epoch consoles see that an agent was restarted, and that ids of its earlier objects are void. It has to differ
from start to start:

* with a state directory, starts are counted in a file there (`epoch_file`);
* without one, it is the time of the start, in seconds since 1970, as a 32-bit number. This needs no file, differs when
  starts are a second apart, and fits the field that C++ consoles read it into.

A state directory belongs to one agent at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from uuid import uuid4

from qmf.agent.agent_identity import AgentIdentity
from qmf.agent.epoch_file import EPOCH_MAX, count_start
from qmf.agent.options import AgentOptions
from qmf.errors import CallerError

#: Longest name in UTF-8. AMQP 0-10 brokers cut routing keys over 255 bytes (QMF2.md 1.1), and the longest prefix of a
#: key without class names is ``agent.ind.heartbeat.``.
MAX_NAME = 255 - len("agent.ind.heartbeat.")


def make_identity(options: AgentOptions, library_attributes: Mapping[str, object] | None = None) -> AgentIdentity:
    """The identity of an agent at this start; with a state directory, the start is counted there.

    Args:
        options: of the agent. The epoch is taken from its clock where it is neither given nor counted.
        library_attributes: attributes that the library adds to those of the application.

    Raises:
        CallerError: the name is too long, or the state directory cannot be written.
    """
    instance, epoch = options.instance, options.epoch
    time = time_epoch(options.clock.time_ns())
    if options.state_dir is not None:
        instance, counted = count_start(options.state_dir, (options.vendor, options.product), instance, time)
        epoch = epoch or counted
    identity = AgentIdentity(
        vendor=options.vendor,
        product=options.product,
        instance=instance or str(uuid4()),
        epoch=epoch or time,
        interval=options.interval,
        attributes={**options.attributes, **(library_attributes or {})},
    )
    if len(identity.name.encode()) > MAX_NAME:
        raise CallerError(f"the name of an agent must have at most {MAX_NAME} bytes: {identity.name}")
    return identity


def time_epoch(now: int) -> int:
    """A time, in ns since 1970, as an epoch, from 1."""
    return (now // 1_000_000_000) & EPOCH_MAX or 1
