"""Names of agents, classes and objects in the paths of URLs.

A name may have any characters, slashes among them, which servers and proxies decode before they look at a path. So what
is not safe in a path is written with a tilde and the digits of its bytes: ``a/b`` as ``a~2Fb``. Nobody decodes that
but us, and most names look as they are.
"""

from __future__ import annotations

import functools
import re

from qmf.console.aio import ObjectId

#: Where the REST interface to management begins.
API = "/api/v1"

_UNSAFE = re.compile(r"[^A-Za-z0-9._:@-]+")
_CODED = re.compile(rb"~([0-9A-Fa-f]{2})")


@functools.lru_cache(1000)
def to_segment(name: str) -> str:
    """A name as one segment of a path; ``.`` and ``..``, which would be resolved, and the empty name are coded."""
    if name in ("", ".", ".."):
        return _encode(name) or "~"
    return _UNSAFE.sub(lambda match: _encode(match[0]), name)


def _encode(text: str) -> str:
    return "".join(f"~{byte:02X}" for byte in text.encode("utf-8", "surrogateescape"))


def from_segment(segment: str) -> str:
    """The name that a segment stands for; what is not coded is taken as it is."""
    if segment == "~":
        return ""
    data = segment.encode("utf-8", "surrogateescape")
    return _CODED.sub(lambda match: bytes([int(match[1], 16)]), data).decode("utf-8", "surrogateescape")


def agent_href(agent: str) -> str:
    """Where an agent is found."""
    return f"{API}/agents/{to_segment(agent)}"


def object_href(object_id: ObjectId) -> str:
    """Where an object is found; its id must name the agent."""
    assert object_id.agent_name is not None
    return f"{agent_href(object_id.agent_name)}/objects/{to_segment(object_id.object_name)}"


def schema_href(package: str, name: str, hash: object = None) -> str:
    """Where the schema of a class or event is found; with a hash, that version of it."""
    version = f"?hash={hash}" if hash else ""
    return f"{API}/schemas/{to_segment(package)}/{to_segment(name)}{version}"
