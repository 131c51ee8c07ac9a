"""Ids of consumers. An id says all that is needed to make the consumer again, so that no file has to.

An id is a part of the URL of a consumer. A server that was started again, or has ended an idle consumer, reads from it
what the client had asked for, and goes on. A check sum tells ids of this server from invented ones; it is no secret,
because a client may make any consumer that it can describe. An id fits one destination and one protocol only.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import secrets
from typing import Any

import attrs

from qmf.errors import QmfError

#: Characters of an id, at most; a selector may have about half of that.
MAX_LENGTH = 3000


class OptionsTooLong(QmfError):
    """The options of a consumer are too long for a URL."""


@attrs.frozen(kw_only=True)
class ConsumerOptions:
    """What a client asks for when it creates a pull consumer.

    Attributes:
        auto_ack: messages count as acknowledged when they are pulled.
        selector: condition on the properties of messages; None for all.
        durable: of a topic: the subscription outlives the consumer and the server.
        name: of a topic: of the subscription; None for one without.
        idle_timeout: milliseconds after which an idle consumer ends; None for the server's.
        delete_when_idle: of a topic: the subscription ends with an idle consumer, even a durable one.
    """

    auto_ack: bool = True
    selector: str | None = None
    durable: bool = False
    name: str | None = None
    idle_timeout: int | None = None
    delete_when_idle: bool = False


#: Options as they are written in ids, where they differ from the default.
_SHORT = {"selector": "s", "durable": "d", "name": "n", "idle_timeout": "i", "delete_when_idle": "w"}
_KINDS: dict[str, type[Any]] = {"s": str, "d": bool, "n": str, "i": int, "w": bool}


def make_id(destination: str, options: ConsumerOptions) -> str:
    """A new id; of a consumer with a name always the same one; `destination`: kind and name, such as ``queues/orders``.

    Raises:
        OptionsTooLong: selector and name are too long.
    """
    unique = "named" if options.name is not None else str(1 + secrets.randbelow(10**12))
    defaults = ConsumerOptions()
    values = {
        short: getattr(options, name)
        for name, short in _SHORT.items()
        if getattr(options, name) != getattr(defaults, name)
    }
    encoded = base64.urlsafe_b64encode(json.dumps(values, separators=(",", ":")).encode()).decode().rstrip("=")
    body = f"{unique}.{encoded}" if values else unique
    found = f"{body}-{_check(destination, body, auto_ack=options.auto_ack)}"
    if len(found) > MAX_LENGTH:
        raise OptionsTooLong(f"selector and name are too long: an id of {len(found)} characters, above {MAX_LENGTH}")
    return found


def read_id(destination: str, text: str, *, auto_ack: bool) -> ConsumerOptions | None:
    """The options of a consumer; None if this is no id of a consumer of that destination and protocol."""
    body, _, check = text.rpartition("-")
    if len(text) > MAX_LENGTH or check != _check(destination, body, auto_ack=auto_ack):
        return None
    _, _, encoded = body.partition(".")
    try:
        values = json.loads(base64.urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4))) if encoded else {}
    except (binascii.Error, ValueError):
        return None
    if not isinstance(values, dict) or any(type(value) is not _KINDS.get(name) for name, value in values.items()):
        return None
    return ConsumerOptions(
        auto_ack=auto_ack, **{name: values[short] for name, short in _SHORT.items() if short in values}
    )


def _check(destination: str, body: str, *, auto_ack: bool) -> str:
    text = f"qmf-web {destination}\n{auto_ack}\n{body}"
    return hashlib.blake2s(text.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
