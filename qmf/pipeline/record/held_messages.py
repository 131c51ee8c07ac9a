"""Messages of classes whose schemas have not come yet: they wait for them, and become typed rows in their order.

A console asks the agent for the schema of a class that is new, and passes on the messages without one where that fails:
the agent was busy, cut off, or ended right away. Here they wait while the agents are asked again, for a limited time
and in a limited number; only then are they left untyped. What waits is stored with each commit, so a kill loses it no
more than rows.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import time
from collections.abc import Callable, Iterable

import attrs

from qmf.console.aio import AnySchema, Client
from qmf.errors import CallerError, ProtocolError, QmfError
from qmf.protocol import Envelope, EventData, EventsIndication, ObjectData, ObjectsIndication, decode, encode
from qmf.schema import ClassKey

log = logging.getLogger("qmf.pipeline")

#: Seconds that messages wait for the schema of their class.
WAIT_LIMIT = 60.0

#: Messages, and bytes of them, that wait at most.
MAX_MESSAGES, MAX_BYTES = 10_000, 32 * 1024 * 1024

#: Seconds from one request for a schema to the next, at first and at most.
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0


@attrs.frozen(kw_only=True)
class HeldMessage:
    """One object or event of a class whose schema is not known, as a message, with its arrival in ns."""

    agent: str
    epoch: int | None
    received_ns: int
    encoded: bytes

    @property
    def data(self) -> ObjectData | EventData:
        """The object or event; `ProtocolError` if it is neither."""
        message = decode(self.encoded)
        content = message.content if isinstance(message, Envelope) else None
        if isinstance(content, ObjectsIndication):
            return content.objects[0]
        if isinstance(content, EventsIndication):
            return content.events[0]
        raise ProtocolError("neither an object nor an event")

    @classmethod
    def of(cls, data: ObjectData | EventData, *, agent: str, epoch: int | None, received_ns: int) -> HeldMessage:
        """Encode an object or event; `CallerError` if it has a value that no message can hold."""
        content = ObjectsIndication((data,)) if isinstance(data, ObjectData) else EventsIndication((data,))
        encoded = encode(Envelope(content=content, agent=agent))
        return cls(agent=agent, epoch=epoch, received_ns=received_ns, encoded=encoded)


def to_json(messages: Iterable[HeldMessage]) -> str:
    return json.dumps([{**attrs.asdict(item), "encoded": base64.b64encode(item.encoded).decode()} for item in messages])


def from_json(text: str) -> list[HeldMessage]:
    """The reverse of `to_json`; `ValueError` if it is no such text, or a message in it is none."""
    try:
        found = [HeldMessage(**{**item, "encoded": base64.b64decode(item["encoded"])}) for item in json.loads(text)]
        for item in found:
            _ = item.data
    except (KeyError, TypeError, QmfError) as error:
        raise ValueError(str(error)) from error
    return found


HeldRowWriter = Callable[[HeldMessage, AnySchema | None, str], None]
"""Makes the row of a message that waited; without a schema where that did not come, for a reason."""


class HeldMessages:
    """Holds messages by class. Belongs to the event loop."""

    def __init__(self, client: Client, write: HeldRowWriter, *, timeout: float = WAIT_LIMIT) -> None:
        """Hold nothing; `write` is called with each message when its schema came, or is not waited for any more."""
        self._client = client
        self._write = write
        self._timeout = timeout
        self._held: dict[ClassKey, list[HeldMessage]] = {}
        #: Classes whose messages are not held any more, and why.
        self._given_up: dict[ClassKey, str] = {}
        self._tasks: dict[ClassKey, asyncio.Task[None]] = {}
        self._count = self._bytes = 0
        self._changed_at: float | None = None

    def __len__(self) -> int:
        return self._count

    def why_not(self, key: ClassKey | None) -> str | None:
        """Why messages of a class cannot wait for its schema; None where they can."""
        if key is None:
            return "it names no class"
        if key.hash is None:
            return "it names no version of its class"
        return self._given_up.get(key)

    def hold(self, key: ClassKey, data: ObjectData | EventData, *, agent: str, epoch: int | None, now: int) -> str:
        """Hold a message, or return why not: then those before it are written, so that order is kept."""
        try:
            message = HeldMessage.of(data, agent=agent, epoch=epoch, received_ns=now)
        except CallerError as error:
            self._give_up(key, str(error))
            return str(error)
        if self._count >= MAX_MESSAGES or self._bytes + len(message.encoded) > MAX_BYTES:
            reason = f"{self._count} messages are waiting for schemas"
            self._give_up(key, reason)
            return reason
        self._add(key, message)
        return ""

    def restore(self, messages: Iterable[HeldMessage]) -> None:
        """Hold what the run before held when it was killed."""
        for message in messages:
            key = message.data.class_key
            if key is not None:
                self._add(key, message)
        self._changed_at = None

    def schema_known(self, key: ClassKey, schema: AnySchema) -> None:
        """The schema of a class is known: its messages are written."""
        if not (self._held or self._given_up):
            return  # mostly, and hashing a key is slow
        self._given_up.pop(key, None)
        if key in self._held:
            self._release(key, schema, "")

    def messages_if_changed(self) -> list[HeldMessage] | None:
        """All that wait, in order of each class, to be stored; None if they are those of the last call."""
        if self._changed_at is None:
            return None
        self._changed_at = None
        return [message for held in self._held.values() for message in held]

    def age(self) -> float:
        """Seconds since the first change that is to be stored; 0 for none."""
        return 0.0 if self._changed_at is None else time.monotonic() - self._changed_at

    def close(self, reason: str) -> None:
        for key in list(self._held):
            self._give_up(key, reason)

    def _add(self, key: ClassKey, message: HeldMessage) -> None:
        self._held.setdefault(key, []).append(message)
        self._count += 1
        self._bytes += len(message.encoded)
        self._change()
        if key not in self._tasks:
            self._tasks[key] = asyncio.get_running_loop().create_task(self._ask(key))

    def _give_up(self, key: ClassKey, reason: str) -> None:
        log.warning("messages of %s stay untyped: %s", key, reason)
        self._given_up[key] = reason
        self._release(key, None, reason)

    def _release(self, key: ClassKey, schema: AnySchema | None, reason: str) -> None:
        task = self._tasks.pop(key, None)
        if task is not None and task is not asyncio.current_task():
            task.cancel()
        for message in self._held.pop(key, ()):
            self._count -= 1
            self._bytes -= len(message.encoded)
            self._change()
            self._write(message, schema, reason)

    def _change(self) -> None:
        if self._changed_at is None:
            self._changed_at = time.monotonic()

    async def _ask(self, key: ClassKey) -> None:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout
        pause, reason = _FIRST_PAUSE, "no answer"
        while loop.time() < deadline:
            try:
                async with asyncio.timeout_at(deadline):
                    self._release(key, await self._client.schema(key), "")
                    return
            except TimeoutError:
                break
            except QmfError as error:
                reason = str(error)
            await asyncio.sleep(min(pause, max(0.0, deadline - loop.time())))
            pause = min(2 * pause, _LONGEST_PAUSE)
        self._give_up(key, f"no schema within {self._timeout:g} s: {reason}")
