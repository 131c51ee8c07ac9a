"""Identifiers in the published API: brokers' URLs, class keys and object ids."""

from __future__ import annotations

import functools
import re
import socket
from collections.abc import Mapping
from uuid import UUID

from qmf import schema
from qmf.bus import parse_url
from qmf.errors import CallerError
from qmf.protocol import ObjectId as CoreId

_KEY = re.compile(r"([^:()]+):([^:()]+)(?::(_data|_event))?\(([0-9a-fA-F-]{36})\)")


class BrokerURL:
    """The URL of a broker.

    Attributes:
        scheme: ``amqp`` or ``amqps``.
        host, port: the broker's address.
        authName, authPass: user and password, or None.
    """

    def __init__(self, text: str) -> None:
        """Read a URL.

        Args:
            text: ``host``, ``host:port`` or ``user/password@host:port``, with or without ``amqp://`` or ``amqps://``.

        Raises:
            UrlError: not a URL of this form.
        """
        url = parse_url(text)
        self.scheme = "amqps" if url.tls else "amqp"
        self.host = url.host
        self.port = url.port
        self.authName = url.username
        self.authPass = url.password

    def name(self) -> str:
        """The URL as text."""
        return str(self)

    def match(self, host: str, port: int) -> bool:
        """True when a host and port resolve to the same address."""
        return socket.getaddrinfo(self.host, self.port)[0][4] == socket.getaddrinfo(host, port)[0][4]

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __repr__(self) -> str:
        return f"BrokerURL({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BrokerURL) and (other.host, other.port) == (self.host, self.port)

    def __hash__(self) -> int:
        return hash((self.host, self.port))


class ClassKey:
    """The key of one version of a class or event class."""

    TYPE_DATA = "_data"
    TYPE_EVENT = "_event"

    def __init__(self, constructor: str | Mapping[str, object] | schema.ClassKey) -> None:
        """Make a key.

        Args:
            constructor: its printed form, ``package:class(hash)`` or ``package:class:_data(hash)``; or a mapping as
                `asMap` returns; or a key of `qmf.schema`.

        Raises:
            CallerError: the text or mapping is not a class key.
        """
        if isinstance(constructor, schema.ClassKey):
            self.core = constructor
        elif isinstance(constructor, str):
            self.core = _key_from_text(constructor)
        else:
            self.core = _key_from_map(constructor)

    def getPackageName(self) -> str:
        """Name of the package."""
        return self.core.package

    def getClassName(self) -> str:
        """Name of the class."""
        return self.core.name

    def getHash(self) -> UUID | None:
        """The hash of the schema, which distinguishes versions of the class."""
        return self.core.hash

    def getHashString(self) -> str:
        """The hash as text."""
        return str(self.core.hash)

    def getType(self) -> str:
        """`TYPE_DATA` or `TYPE_EVENT`."""
        return self.core.kind.value

    def getPackageKey(self) -> tuple[str, UUID | None]:
        """Class name and hash: unique within the package."""
        return self.core.name, self.core.hash

    def asMap(self) -> dict[str, object]:
        """The QMFv2 form, as a mapping."""
        return {
            "_package_name": self.core.package,
            "_class_name": self.core.name,
            "_hash": self.core.hash,
            "_type": self.core.kind.value,
        }

    def __repr__(self) -> str:
        return f"{self.core.package}:{self.core.name}:{self.core.kind.value}({self.core.hash})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClassKey) and other.core == self.core

    def __hash__(self) -> int:
        return hash(self.core)


def _key_from_text(text: str) -> schema.ClassKey:
    found = _KEY.fullmatch(text)
    if found is None:
        raise CallerError(f"{text!r} is not a class key; write package:class(hash)")
    package, name, kind, digest = found.groups()
    return schema.ClassKey(package, name, schema.Kind(kind or ClassKey.TYPE_DATA), UUID(digest))


def _key_from_map(values: Mapping[str, object]) -> schema.ClassKey:
    package, name, digest = values.get("_package_name"), values.get("_class_name"), values.get("_hash")
    kind = values.get("_type") or ClassKey.TYPE_DATA
    if not isinstance(package, str) or not isinstance(name, str) or not isinstance(digest, UUID | None):
        raise CallerError(
            f"{dict(values)!r} is not a class key; it needs _package_name, _class_name and a UUID as _hash"
        )
    return schema.ClassKey(package, name, schema.Kind(kind), digest)


@functools.total_ordering
class ObjectId:
    """The id of an object.

    Attributes:
        isV2: always True.
        agentName: the agent's name; ``0`` for the agent of the connected broker.
        agentEpoch: number of the agent's start; 0 for objects that outlive restarts.
        objectName: unique within the agent.
    """

    isV2 = True

    def __init__(self, constructor: Mapping[str, object] | CoreId, agentName: str | None = None) -> None:
        """Make an id.

        Args:
            constructor: a mapping as `asMap` returns, or an id of `qmf.protocol`.
            agentName: how the agent is called here, if not by its name.

        Raises:
            CallerError: the mapping has no object name.
        """
        self.core = constructor if isinstance(constructor, CoreId) else _id_from_map(constructor, agentName)
        self.agentName = agentName or self.core.agent_name or ""
        self.agentEpoch = self.core.agent_epoch
        self.objectName = self.core.object_name

    @classmethod
    def create(cls, agent_name: str, object_name: str, epoch: int = 0) -> ObjectId:
        """An id from its parts."""
        return cls(CoreId(object_name, _agent(agent_name), epoch), agent_name)

    def getFlags(self) -> int:
        """Always 0."""
        return 0

    def getSequence(self) -> int:
        """The epoch."""
        return self.agentEpoch

    def getBrokerBank(self) -> int:
        """Always 1."""
        return 1

    def getAgentBank(self) -> str:
        """The agent's name; ``0`` for the agent of the connected broker."""
        return self.agentName

    def getV2RoutingKey(self) -> str:
        """The routing key of requests to the agent."""
        return "broker" if self.agentName == "0" else self.agentName

    def getObject(self) -> str:
        """The object's name."""
        return self.objectName

    def isDurable(self) -> bool:
        """True when the object outlives restarts of its agent."""
        return self.agentEpoch == 0

    def index(self) -> str:
        """The printed form."""
        return repr(self)

    def asMap(self) -> dict[str, object]:
        """The QMFv2 form, as a mapping."""
        result: dict[str, object] = {"_agent_name": self.agentName, "_object_name": self.objectName}
        if self.agentEpoch:
            result["_agent_epoch"] = self.agentEpoch
        return result

    def __repr__(self) -> str:
        return f"0-{self.agentEpoch}-1-{self.agentName}-{self.objectName}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ObjectId) and other._order() == self._order()

    def __lt__(self, other: object) -> bool:
        if not isinstance(other, ObjectId):
            return NotImplemented
        return self._order() < other._order()

    def __hash__(self) -> int:
        return hash(self._order())

    def _order(self) -> tuple[str, str, int]:
        return self.objectName, self.agentName, self.agentEpoch


def _agent(name: str | None) -> str | None:
    """The agent's name as the asynchronous client has it."""
    return "broker" if name == "0" else name


def _id_from_map(values: Mapping[str, object], agent: str | None) -> CoreId:
    name, owner, epoch = values.get("_object_name"), values.get("_agent_name", agent), values.get("_agent_epoch", 0)
    if not isinstance(name, str) or not isinstance(owner, str | None) or not isinstance(epoch, int):
        raise CallerError(f"{dict(values)!r} is not an object id; it needs an _object_name")
    return CoreId(name, _agent(owner), epoch)
