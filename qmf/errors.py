"""The exceptions of this project.

The tree, by cause::

    QmfError
    ├── CallerError            the calling program or its user made a mistake
    │   ├── SchemaError        an XML schema is invalid; carries every problem with file and line
    │   ├── ConstraintError    a value does not fit its property, statistic or argument
    │   ├── EncodeError        a value cannot be encoded (`qmf.codec`)
    │   └── NotFoundError      no such class, object, method or agent; carries similar names
    ├── PeerError              the peer violated the protocol, or refused a request
    │   ├── DecodeError        bytes are not a valid encoding
    │   ├── ProtocolError      a valid message has invalid QMF content
    │   │   └── ContentError   the same, with the data that an answer needs (`qmf.protocol`)
    │   │       └── UnknownOpcode
    │   └── RemoteError        an agent answered with `_exception`
    ├── NetworkError           the broker or the network failed
    │   ├── ConnectError       no connection could be made; names the URL and the reason
    │   │   └── AuthenticationError
    │   ├── DisconnectedError  the connection is lost, and may be restored
    │   └── LinkError          the broker refused or closed a link or a message
    └── RequestTimeout         no answer in time

Errors have their data as attributes; `__str__` makes the message. Any other exception from this project is a bug.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Sequence

import attrs


class QmfError(Exception):
    """Base of all errors of this project; not raised itself."""


class CallerError(QmfError):
    """The calling program, or its user, made a mistake."""


@attrs.frozen
class SchemaProblem:
    """One fault in a schema file.

    Attributes:
        file: name of the file as the caller gave it.
        line: line in the file, from 1.
        message: what is wrong, in one line.
    """

    file: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.message}"


class SchemaError(CallerError):
    """An XML schema is invalid.

    Attributes:
        problems: every fault found, in file order.
    """

    def __init__(self, problems: Iterable[SchemaProblem]) -> None:
        self.problems: tuple[SchemaProblem, ...] = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class ConstraintError(CallerError, ValueError):
    """A value does not fit the property, statistic or argument it was given to.

    Attributes:
        where: what the value was for, e.g. ``filesystem.threshold`` or ``argument 'signal' of process.signal``.
        type_name: the schema type, e.g. ``uint8``.
        value: the rejected value.
        reason: the bound or rule, e.g. ``must be 0 to 255``.
    """

    def __init__(self, where: str, type_name: str, value: object, reason: str) -> None:
        self.where = where
        self.type_name = type_name
        self.value = value
        self.reason = reason
        super().__init__(where, type_name, value, reason)

    def __str__(self) -> str:
        shown = repr(self.value)
        if len(shown) > 60:
            shown = f"{shown[:40]}...{shown[-17:]}"
        return f"{self.where} ({self.type_name}): {self.reason}, not {shown}"


class NotFoundError(CallerError, LookupError):
    """No such class, object, method or agent.

    Attributes:
        kind: what was searched for, e.g. ``class``.
        name: the name that does not exist.
        near: existing names that are similar, the most similar first; none that is only a number.
    """

    def __init__(self, kind: str, name: str, known: Iterable[str] = ()) -> None:
        self.kind = kind
        self.name = name
        self.near: Sequence[str] = _near(name, list(known))
        super().__init__(kind, name, self.near)

    def __str__(self) -> str:
        hint = f"; did you mean {' or '.join(self.near)}?" if self.near else ""
        return f"no {self.kind} {self.name!r}{hint}"


def _near(name: str, known: Sequence[str]) -> list[str]:
    """At most three names that are similar to `name`: those that begin with it, then others. Numbers never are."""
    known = [item for item in known if not item.isdecimal()]
    begun = sorted(item for item in known if name and item.lower().startswith(name.lower()))
    alike = difflib.get_close_matches(name, known, n=3, cutoff=0.6)
    return list(dict.fromkeys(begun + alike))[:3]


def unknown_attribute(cls: type, name: str, known: Iterable[str] | None = None) -> AttributeError:
    """The error for an attribute that objects of a class don't have; it has similar names.

    Args:
        cls: of the object.
        name: that it doesn't have.
        known: its attributes; None for those of the class.
    """
    known = dir(cls) if known is None else known
    near = NotFoundError("attribute", name, [item for item in known if not item.startswith("_")]).near
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    return AttributeError(f"{cls.__name__!r} object has no attribute {name!r}{hint}", name=name)


class PeerError(QmfError):
    """The peer violated the protocol, or refused a request."""


class DecodeError(PeerError):
    """Bytes that are not a valid encoding. The message names the offset where known."""


class ProtocolError(PeerError):
    """A valid AMQP message with content that is not valid QMF."""


class IncompleteAnswer(PeerError):
    """Parts of an answer are missing: the broker, or the loss of a connection, dropped them."""


class RemoteError(PeerError):
    """An agent answered with an exception.

    Attributes:
        text: the error text of the agent.
        code: QMF error code, or None when the agent sent none (QMF2.md 4.6).
        agent: name of the agent, if known.
        values: all other values of the exception.
    """

    def __init__(
        self, text: str, code: int | None = None, agent: str | None = None, values: dict[str, object] | None = None
    ) -> None:
        self.text = text
        self.code = code
        self.agent = agent
        self.values = values or {}
        super().__init__(text, code, agent)

    def __str__(self) -> str:
        code = "" if self.code is None else f" (code {self.code})"
        agent = f"agent {self.agent}: " if self.agent else ""
        return f"{agent}{self.text}{code}"


class NetworkError(QmfError):
    """The broker or the network failed."""


class ConnectError(NetworkError):
    """No connection could be made.

    Attributes:
        url: of the broker, without password.
        reason: why not, as reported by the system or the broker.
    """

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(url, reason)

    def __str__(self) -> str:
        return f"cannot connect to {self.url}: {self.reason}"


class AuthenticationError(ConnectError):
    """The broker refused the user, the password, or every SASL mechanism that we offer."""


class DisconnectedError(NetworkError):
    """There is no connection (any more).

    Attributes:
        url: of the broker, without password.
        reason: why not.
    """

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(url, reason)

    def __str__(self) -> str:
        return f"not connected to {self.url}: {self.reason}"


class LinkError(NetworkError):
    """The broker refused or closed a link, or refused a message.

    Attributes:
        address: address of the link's node; empty for the anonymous sender.
        condition: AMQP error condition, e.g. ``amqp:not-found``.
        description: the error text of the broker.
    """

    def __init__(self, address: str, condition: str, description: str) -> None:
        self.address = address
        self.condition = condition
        self.description = description
        super().__init__(address, condition, description)

    def __str__(self) -> str:
        where = f"link to {self.address!r}" if self.address else "sending link"
        description = f": {self.description}" if self.description else ""
        return f"{where} refused by the broker with {self.condition}{description}"


class RequestTimeout(QmfError, TimeoutError):
    """No answer was received in time.

    Attributes:
        what: the request, e.g. ``method echo of filesystem '/'``.
        agent: the agent that was asked, if it was one agent.
        seconds: the timeout.
    """

    def __init__(self, what: str, agent: str | None, seconds: float) -> None:
        self.what = what
        self.agent = agent
        self.seconds = seconds
        super().__init__(what, agent, seconds)

    def __str__(self) -> str:
        agent = f" from agent {self.agent}" if self.agent else ""
        return f"no answer to {self.what}{agent} within {self.seconds:g} s"
