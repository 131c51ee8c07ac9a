"""What requests say: names in paths, forms and query parameters, checked; every mistake is a problem that names it."""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import parse_qsl

from starlette.requests import Request

from qmf.web.addresses import from_segment
from qmf.web.messages.consumer_ids import ConsumerOptions
from qmf.web.messages.contents import DeliveryOptions
from qmf.web.messages.destinations import Destination, DestinationKind
from qmf.web.problems import Problem

#: Seconds that a pull waits at most, whatever `Accept-Wait` says.
MAX_WAIT = 60.0

_MAX_TTL = 2**32 // 1000
_CREATION_ID = re.compile(r"[\x20-\x7e]{1,255}\Z")
_FORM = "application/x-www-form-urlencoded"
_BOOLEANS = {"true": True, "false": False}


def read_destination(kind: DestinationKind, segment: str) -> Destination:
    """The destination that a path names; raises `Problem` 404 for a name that no node can have."""
    destination = Destination(kind, from_segment(segment))
    if not destination.is_valid:
        raise Problem(404, f"there is no {destination}: no node can have this name")
    return destination


async def no_query(request: Request) -> None:
    """A dependency of routes without query parameters; raises `Problem` 400 for one."""
    for name in request.query_params:
        raise Problem(400, f"query parameter {name[:100]!r} is unknown; there is none here", parameter=name[:100])


async def read_form(request: Request, *names: str) -> dict[str, str]:
    """The parameters of a form, as far as they are given; `request`: with an empty body, or a form.

    Raises:
        Problem: 415, the body is no form; 400, a parameter is unknown or given twice.
    """
    body = await request.body()
    given = request.headers.get("content-type", _FORM).partition(";")[0].strip().lower()
    if not body.strip():
        return {}
    if given != _FORM:
        raise Problem(415, f"the body must be a form ({_FORM}), not {given[:100]!r}")
    try:
        pairs = parse_qsl(body.decode(), keep_blank_values=True, strict_parsing=True, max_num_fields=50)
    except (ValueError, UnicodeDecodeError):
        raise Problem(400, "the form is malformed") from None
    return _each_once(pairs, names)


def _each_once(pairs: Iterable[tuple[str, str]], names: Collection[str]) -> dict[str, str]:
    """Parameters by name; raises `Problem` 400 for one that there is not, or that is given twice."""
    found: dict[str, str] = {}
    for name, value in pairs:
        if name not in names:
            raise Problem(
                400, f"parameter {name[:100]!r} is unknown; there is {', '.join(names)}", parameter=name[:100]
            )
        if name in found:
            raise Problem(400, f"parameter {name!r} is given twice", parameter=name)
        found[name] = value
    return found


def read_boolean(values: Mapping[str, str], name: str, default: bool | None) -> bool:
    """A parameter that is true or false; without a default it must be given."""
    text = values.get(name)
    if text is None and default is not None:
        return default
    found = _BOOLEANS.get((text or "").strip().lower())
    if found is None:
        what = "is missing; it" if text is None else f"is {text[:100]!r}; it"
        raise Problem(400, f"parameter {name!r} {what} must be true or false", parameter=name)
    return found


def read_number(values: Mapping[str, str], name: str, least: int, most: int) -> int | None:
    """A parameter that is a whole number within bounds; None where it is not given."""
    text = values.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"-?[0-9]{1,20}", text.strip()) or not least <= int(text) <= most:
        raise Problem(400, f"parameter {name!r} is {text[:100]!r}; it must be {least} to {most}", parameter=name)
    return int(text)


async def read_consumer_options(request: Request, destination: Destination) -> ConsumerOptions:
    """The options of a pull consumer that is to be created."""
    topic = destination.kind is DestinationKind.TOPIC
    names = ["autoAck", "selector", "idle-timeout", *(["durable", "name", "delete-when-idle"] if topic else [])]
    form = await read_form(request, *names)
    name, selector = form.get("name"), form.get("selector")
    if name is not None and (not 0 < len(name) <= 200 or not name.isprintable() or "|" in name):
        raise Problem(400, "parameter 'name' must have 1 to 200 printable characters, and no |", parameter="name")
    return ConsumerOptions(
        auto_ack=read_boolean(form, "autoAck", default=True),
        selector=selector if selector and not selector.isspace() else None,
        durable=read_boolean(form, "durable", default=False),
        name=name,
        idle_timeout=read_number(form, "idle-timeout", 1, 24 * 3600 * 1000),
        delete_when_idle=read_boolean(form, "delete-when-idle", default=False),
    )


def read_delivery(request: Request) -> DeliveryOptions:
    """How a message is to be sent: query parameters ``durable``, ``ttl``, ``expiration`` and ``priority``."""
    values = _each_once(request.query_params.multi_items(), ("durable", "ttl", "expiration", "priority"))
    ttl = read_number(values, "ttl", 0, _MAX_TTL * 1000)
    expiration = read_number(values, "expiration", 0, 2**53)
    # 0 stands for no limit, as in the published interface.
    seconds = ttl / 1000 if ttl else None
    if expiration:
        left = expiration / 1000 - time.time()
        if left <= 0:
            raise Problem(400, f"parameter 'expiration' is {expiration}, which is past", parameter="expiration")
        seconds = min(left if seconds is None else min(seconds, left), float(_MAX_TTL))
    return DeliveryOptions(
        durable=read_boolean(values, "durable", default=False),
        priority=read_number(values, "priority", 0, 9),
        ttl=seconds,
    )


def read_wait(request: Request) -> float:
    """Seconds for which the client is willing to wait: the header `Accept-Wait`."""
    text = request.headers.get("accept-wait", "0").strip()
    if not re.fullmatch(r"[0-9]{1,10}(\.[0-9]{1,6})?", text):
        raise Problem(400, f"header Accept-Wait is {text[:100]!r}; it must be a number of seconds")
    return min(float(text), MAX_WAIT)


def read_creation_id(segment: str) -> str:
    """The id in the path of a creation."""
    found = from_segment(segment)
    if not _CREATION_ID.match(found):
        raise Problem(400, "the id of a message must have 1 to 255 printable ASCII characters")
    return found
